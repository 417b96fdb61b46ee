// A small encoder cache, such as an engine might have, with names of its own.
//
// Written from docs/protocol.md. With -DUNFILTERED_REPORT it reports every hash that was evicted,
// even one that is cached again: the defect of vllm#52482.
#ifndef EXAMPLE_ENGINE_HPP
#define EXAMPLE_ENGINE_HPP

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

class EncoderCache {
public:
    using Hash = std::string;
    using User = std::string;  // a request
    using Place = std::size_t;  // a position in it

    struct Entry {
        std::int64_t size;
        std::map<User, std::set<Place>> uses;
    };

    explicit EncoderCache(std::int64_t capacity) : capacity_(capacity), free_(capacity) {}

    // Takes a use if the hash is cached.
    bool find(const User& user, Place place, const Hash& hash) {
        const auto found = entries_.find(hash);
        if (found == entries_.end()) return false;
        use(found->second, user, place, hash);
        return true;
    }

    // Whether an item may be encoded in this pass; if so, makes room for it.
    bool admit(std::int64_t size, std::int64_t compute_left, std::int64_t promised) {
        if (size > compute_left || size + promised > free_ + idle_size()) return false;
        while (free_ < size + promised) {
            const Hash oldest = idle_.front();
            idle_.pop_front();
            free_ += entries_.at(oldest).size;
            entries_.erase(oldest);
            evicted_.insert(oldest);
        }
        return true;
    }

    void insert(const User& user, Place place, const Hash& hash, std::int64_t size) {
        if (entries_.count(hash) == 0) {
            if (size > free_) throw std::logic_error("insert without room");
            entries_[hash].size = size;
            free_ -= size;
        }
        use(entries_.at(hash), user, place, hash);
    }

    // One place is consumed. A hash that nobody uses stays, idle, until its room is wanted.
    void consume(const User& user, Place place) {
        const auto used = used_.find({user, place});
        if (used == used_.end()) return;
        const Hash hash = used->second;
        used_.erase(used);
        auto& uses = entries_.at(hash).uses;
        uses.at(user).erase(place);
        if (uses.at(user).empty()) uses.erase(user);
        if (uses.empty()) idle_.push_back(hash);
    }

    // What was inserted in this pass for one place will not be encoded for it. Another user's place
    // in whose name it is to be encoded instead; nothing if there is none, and the entry is undone.
    std::optional<std::pair<User, Place>> withdraw(const User& user, Place place) {
        const auto held = used_.find({user, place});
        if (held == used_.end()) return std::nullopt;
        const Hash hash = held->second;
        const auto places = entries_.at(hash).uses.at(user);
        for (const Place k : places) consume(user, k);
        const Entry& entry = entries_.at(hash);
        if (!entry.uses.empty())
            return std::pair(entry.uses.begin()->first, *entry.uses.begin()->second.begin());
        free_ += entry.size;
        idle_.remove(hash);
        entries_.erase(hash);
        return std::nullopt;
    }

    // What the workers shall drop; said once.
    std::vector<Hash> take_evicted() {
        std::vector<Hash> report;
        for (const Hash& hash : evicted_) {
#ifndef UNFILTERED_REPORT
            if (entries_.count(hash) != 0) continue;
#endif
            report.push_back(hash);
        }
        evicted_.clear();
        return report;
    }

    void clear() { *this = EncoderCache(capacity_); }

    std::int64_t free_size() const { return free_; }
    std::int64_t idle_size() const {
        std::int64_t sum = 0;
        for (const Hash& hash : idle_) sum += entries_.at(hash).size;
        return sum;
    }
    const std::list<Hash>& idle() const { return idle_; }  // oldest first
    const std::map<Hash, Entry>& entries() const { return entries_; }

private:
    std::int64_t capacity_, free_;
    std::map<Hash, Entry> entries_;
    std::map<std::pair<User, Place>, Hash> used_;
    std::list<Hash> idle_;
    std::set<Hash> evicted_;

    void use(Entry& entry, const User& user, Place place, const Hash& hash) {
        if (entry.uses.empty()) idle_.remove(hash);
        entry.uses[user].insert(place);
        used_[{user, place}] = hash;
    }
};

#endif
