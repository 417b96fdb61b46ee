// A small engine around the example's cache: it schedules requests pass by pass, hands out KV blocks
// and keeps what a worker holds. Written from docs/protocol.md; one legal choice among many.
#ifndef EXAMPLE_SCHEDULER_HPP
#define EXAMPLE_SCHEDULER_HPP

#include <algorithm>
#include <optional>

#include "example_engine.hpp"
#include "mmcache_engine.hpp"

// Blocks of tokens. What a block holds can be found again until it is handed out anew.
class Blocks {
public:
    using Tokens = std::vector<std::string>;

    Blocks(std::int64_t count, std::int64_t size, bool caching)
        : size_(static_cast<std::size_t>(size)), caching_(caching) {
        for (std::int64_t k = 0; k < count; ++k) idle_.push_back(k);
    }
    // How many of the first tokens are computed already; one is always left to compute.
    std::int64_t prefix(const Tokens& tokens) const {
        return static_cast<std::int64_t>(found(tokens).size() * size_);
    }
    // Blocks for the first `count` tokens of a request that has none, if all of it fits.
    bool admit(const std::string& request, const Tokens& tokens, std::int64_t count) {
        std::vector<std::int64_t> mine = found(tokens);
        const auto used = static_cast<std::size_t>(std::count_if(
            mine.begin(), mine.end(), [this](std::int64_t b) { return users_[b] == 0; }));
        const std::size_t most = std::max(needed(count), needed(static_cast<std::int64_t>(tokens.size())));
        if (most - mine.size() > idle_.size() - used) return false;
        for (const std::int64_t block : mine) {
            if (users_[block]++ == 0) idle_.remove(block);
        }
        taken_[request] = std::move(mine);
        return grow(request, count);
    }
    bool grow(const std::string& request, std::int64_t count) {
        auto& mine = taken_[request];
        const std::size_t wanted = needed(count);
        if (wanted > mine.size() && wanted - mine.size() > idle_.size()) return false;
        while (mine.size() < wanted) {
            const std::int64_t block = idle_.front();
            idle_.pop_front();
            if (const auto known = content_.find(block); known != content_.end()) {
                where_.erase(known->second);
                content_.erase(known);
            }
            users_[block] = 1;
            mine.push_back(block);
        }
        return true;
    }
    void computed(const std::string& request, const Tokens& tokens, std::int64_t count) {
        if (!caching_) return;
        const auto& mine = taken_[request];
        const std::size_t full = static_cast<std::size_t>(count) / size_;
        for (std::size_t k = 0; k < std::min(full, mine.size()); ++k) {
            Tokens content(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>((k + 1) * size_));
            if (content_.count(mine[k]) == 0 && where_.count(content) == 0) {
                where_[content] = mine[k];
                content_[mine[k]] = std::move(content);
            }
        }
    }
    void release(const std::string& request) {
        const auto mine = taken_.find(request);
        if (mine == taken_.end()) return;
        for (auto block = mine->second.rbegin(); block != mine->second.rend(); ++block)
            if (--users_[*block] == 0) idle_.push_back(*block);
        taken_.erase(mine);
    }

private:
    std::size_t size_;
    bool caching_;
    std::list<std::int64_t> idle_;  // least recently used first
    std::map<std::int64_t, std::int64_t> users_;
    std::map<std::string, std::vector<std::int64_t>> taken_;
    std::map<std::int64_t, Tokens> content_;
    std::map<Tokens, std::int64_t> where_;

    std::size_t needed(std::int64_t count) const {
        return (static_cast<std::size_t>(count) + size_ - 1) / size_;
    }
    std::vector<std::int64_t> found(const Tokens& tokens) const {
        std::vector<std::int64_t> blocks;
        for (std::size_t end = size_; caching_ && end < tokens.size(); end += size_) {
            const auto at = where_.find(Tokens(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end)));
            if (at == where_.end()) break;
            blocks.push_back(at->second);
        }
        return blocks;
    }
};

// What a worker holds: it drops, then encodes, then gathers.
struct Worker {
    std::set<std::string> held;
    std::set<std::pair<std::string, std::size_t>> payloads;  // raw items that were sent
};

class Engine {
public:
    explicit Engine(const mmcache::EngineSettings& settings)
        : settings_(settings),
          cache_(settings.cache_size),
          blocks_(settings.num_blocks, settings.block_size, settings.prefix_caching) {}

    void submit(const mmcache::EngineRequest& request) {
        waiting_.push_back(std::make_shared<Live>(Live{request, arrivals_++, 0, 0}));
    }
    void abort(const std::string& id) {
        for (auto* list : {&running_, &waiting_})
            for (const auto& live : *list)
                if (live->request.request_id == id) return finish(live);
    }
    void reset() {
        cache_.clear();
        worker_.held.clear();
    }

    mmcache::Pass step() {
        pass_ = {};
        tokens_left_ = settings_.token_budget;
        encoder_left_ = settings_.encoder_budget;
        schedule_running();
        if (pass_.preempted.empty()) schedule_waiting();
        dispatch();
        if (pass_.missed.empty()) update();
        for (const auto& live : running_) pass_.running.push_back(live->request.request_id);
        for (const auto& live : queue()) pass_.waiting.push_back(live->request.request_id);
        for (const auto& [hash, entry] : cache_.entries()) {
            auto& users = pass_.references[hash];
            for (const auto& use : entry.uses) users.push_back(use.first);
        }
        pass_.worker.assign(worker_.held.begin(), worker_.held.end());
        return pass_;
    }

private:
    struct Live {
        mmcache::EngineRequest request;
        std::int64_t arrival, computed, generated;
        std::int64_t total() const { return request.num_prompt_tokens + generated; }
    };
    using LivePtr = std::shared_ptr<Live>;
    struct Plan {
        std::int64_t tokens;
        std::vector<std::size_t> fresh, again;  // admitted here, and further places of the same
    };

    mmcache::EngineSettings settings_;
    EncoderCache cache_;
    Blocks blocks_;
    Worker worker_;
    std::vector<LivePtr> running_, waiting_;
    std::int64_t arrivals_ = 0, tokens_left_ = 0, encoder_left_ = 0;
    mmcache::Pass pass_;

    static std::string token(const Live& live, std::int64_t k) {
        const auto& r = live.request;
        if (k >= r.num_prompt_tokens) return "made by " + r.request_id + " " + std::to_string(k);
        for (const auto& item : r.items)
            if (item.position <= k && k < item.end())
                return "item " + item.identifier + " " + std::to_string(k - item.position);
        return "text " + r.text + " " + std::to_string(k);
    }
    static Blocks::Tokens tokens(const Live& live) {
        Blocks::Tokens all;
        for (std::int64_t k = 0; k < live.total(); ++k) all.push_back(token(live, k));
        return all;
    }
    bool sooner(const LivePtr& a, const LivePtr& b) const {
        return std::pair(a->request.priority, a->arrival) < std::pair(b->request.priority, b->arrival);
    }
    std::vector<LivePtr> queue() const {
        std::vector<LivePtr> order = waiting_;
        if (settings_.priority)
            std::stable_sort(order.begin(), order.end(),
                             [this](const auto& a, const auto& b) { return sooner(a, b); });
        return order;
    }
    static void remove(std::vector<LivePtr>& list, const LivePtr& live) {
        list.erase(std::remove(list.begin(), list.end(), live), list.end());
    }

    // --- scheduling ----------------------------------------------------------------------------

    void schedule_running() {
        const std::vector<LivePtr> order = running_;
        for (const LivePtr& live : order) {
            if (tokens_left_ <= 0) break;
            if (!is_running(live)) continue;  // preempted meanwhile
            const Plan plan = planned(*live, live->computed);
            if (plan.tokens == 0) continue;
            while (!blocks_.grow(live->request.request_id, live->computed + plan.tokens)) {
                const LivePtr victim = settings_.priority
                    ? *std::max_element(running_.begin(), running_.end(),
                                        [this](const auto& a, const auto& b) { return sooner(a, b); })
                    : running_.back();
                preempt(victim);
                if (victim == live) break;
            }
            if (is_running(live)) commit(*live, plan);
        }
    }
    bool is_running(const LivePtr& live) const {
        return std::find(running_.begin(), running_.end(), live) != running_.end();
    }
    void schedule_waiting() {
        for (const LivePtr& live : queue()) {
            if (tokens_left_ <= 0) break;
            const Blocks::Tokens all = tokens(*live);
            const std::int64_t covered = blocks_.prefix(all);
            const Plan plan = planned(*live, covered);
            const std::string& id = live->request.request_id;
            if (plan.tokens == 0) {
                give_back(*live);  // nothing is left for it in this pass
                continue;
            }
            if (!blocks_.admit(id, all, covered + plan.tokens)) {
                give_back(*live);
                break;
            }
            live->computed = covered;
            remove(waiting_, live);
            running_.push_back(live);
            commit(*live, plan);
        }
    }
    // How far the request gets, given what is cached and what can be admitted.
    Plan planned(const Live& live, std::int64_t computed) {
        const auto& r = live.request;
        const std::int64_t ahead = computed + settings_.lookahead;
        std::int64_t budget = encoder_left_, promised = 0;
        Plan plan{std::min({live.total() - computed, settings_.chunk_size, tokens_left_}), {}, {}};
        std::set<std::string> admitted;
        for (std::size_t k = 0; k < r.items.size(); ++k) {
            const auto& item = r.items[k];
            if (item.end() <= computed || item.position >= ahead + plan.tokens) continue;
            const bool whole = item.position < computed || item.end() <= computed + plan.tokens;
            if (whole || settings_.chunked_items) {
                if (admitted.count(item.identifier) != 0) {
                    plan.again.push_back(k);
                    continue;
                }
                if (cache_.find(r.request_id, k, item.identifier)) {
                    pass_.hits.emplace_back(r.request_id, k);
                    continue;
                }
                if (cache_.admit(item.num_embeds, budget, promised)) {
                    budget -= item.num_embeds;
                    promised += item.num_embeds;
                    admitted.insert(item.identifier);
                    plan.fresh.push_back(k);
                    continue;
                }
            }
            plan.tokens = std::max<std::int64_t>(0, item.position - ahead);
            break;
        }
        return plan;
    }
    // It has its blocks: allocate what was admitted, and order it to be encoded.
    void commit(Live& live, const Plan& plan) {
        const auto& r = live.request;
        for (const std::size_t k : plan.fresh) {
            cache_.insert(r.request_id, k, r.items[k].identifier, r.items[k].num_embeds);
            pass_.allocated.emplace_back(r.request_id, k);
            pass_.scheduled_encoder_inputs[r.request_id].push_back(k);
            encoder_left_ -= r.items[k].num_embeds;
        }
        for (const std::size_t k : plan.again) {
            cache_.find(r.request_id, k, r.items[k].identifier);
            pass_.hits.emplace_back(r.request_id, k);
        }
        pass_.num_scheduled_tokens[r.request_id] = plan.tokens;
        pass_.starts[r.request_id] = live.computed;
        tokens_left_ -= plan.tokens;
    }
    // A request that does not run holds no references.
    void give_back(const Live& live) {
        for (std::size_t k = 0; k < live.request.items.size(); ++k)
            cache_.consume(live.request.request_id, k);
    }
    void preempt(const LivePtr& live) {
        const std::string id = live->request.request_id;
        if (const auto tokens = pass_.num_scheduled_tokens.find(id);
            tokens != pass_.num_scheduled_tokens.end()) {
            tokens_left_ += tokens->second;
            pass_.num_scheduled_tokens.erase(tokens);
            pass_.starts.erase(id);
        }
        withdraw(*live);
        give_back(*live);
        blocks_.release(id);
        live->computed = 0;
        remove(running_, live);
        waiting_.insert(waiting_.begin(), live);
        pass_.preempted.push_back(id);
    }
    // What was to be encoded in its name is encoded for whoever has hit it since, or not at all.
    void withdraw(const Live& live) {
        const auto& r = live.request;
        const auto ordered = pass_.scheduled_encoder_inputs.find(r.request_id);
        if (ordered == pass_.scheduled_encoder_inputs.end()) return;
        const std::vector<std::size_t> inputs = ordered->second;
        pass_.scheduled_encoder_inputs.erase(ordered);
        for (const std::size_t k : inputs) {
            const auto heir = cache_.withdraw(r.request_id, k);
            if (heir)
                pass_.scheduled_encoder_inputs[heir->first].push_back(heir->second);
            else
                encoder_left_ += r.items[k].num_embeds;
        }
    }

    // --- the worker's step, and what follows it -------------------------------------------------

    const mmcache::EngineRequest& request(const std::string& id) const {
        for (const auto* list : {&running_, &waiting_})
            for (const auto& live : *list)
                if (live->request.request_id == id) return live->request;
        throw std::logic_error("no request " + id);
    }
    void dispatch() {
        for (const auto& entry : cache_.entries()) pass_.cached.push_back(entry.first);
        pass_.held_before.assign(worker_.held.begin(), worker_.held.end());
        pass_.report = cache_.take_evicted();
        for (const std::string& hash : pass_.report) worker_.held.erase(hash);
        for (const auto& [id, inputs] : pass_.scheduled_encoder_inputs)
            for (const std::size_t k : inputs) {
                worker_.payloads.insert({id, k});  // a raw item travels with the order to encode it
                worker_.held.insert(request(id).items[k].identifier);
            }
        std::set<std::string> missed;
        for (const auto& [id, count] : pass_.num_scheduled_tokens) {
            const std::int64_t start = pass_.starts.at(id), end = start + count + settings_.lookahead;
            for (const auto& item : request(id).items)
                if (item.position < end && item.end() > start && worker_.held.count(item.identifier) == 0)
                    missed.insert(item.identifier);
        }
        pass_.missed.assign(missed.begin(), missed.end());
    }
    void update() {
        const std::vector<LivePtr> order = running_;
        for (const LivePtr& live : order) {
            const auto& r = live->request;
            const auto count = pass_.num_scheduled_tokens.find(r.request_id);
            if (count == pass_.num_scheduled_tokens.end()) continue;
            live->computed += count->second;
            blocks_.computed(r.request_id, tokens(*live), live->computed);
            for (std::size_t k = 0; k < r.items.size(); ++k)
                if (r.items[k].end() <= live->computed) cache_.consume(r.request_id, k);
            if (live->computed == live->total() && ++live->generated >= r.max_tokens) finish(live);
        }
    }
    void finish(LivePtr live) {
        give_back(*live);
        blocks_.release(live->request.request_id);
        remove(running_, live);
        remove(waiting_, live);
    }
};

#endif
