// The adapter of the example engine: vLLM's calls in, the engine's own calls out.
//
//     c++ -std=c++17 -O2 -o driver example.cpp
//     mmcache-conformance run cmd:./driver
#include "example_engine.hpp"
#include "mmcache_adapter.hpp"

using mmcache::Request;

class Driver {
public:
    explicit Driver(std::int64_t cache_size) : cache_(cache_size) {}

    bool check_and_update_cache(const Request& r, std::size_t k) {
        return cache_.find(r.request_id, k, r.items[k].identifier);
    }
    bool can_allocate(const Request& r, std::size_t k, std::int64_t encoder_compute_budget,
                      std::int64_t num_embeds_to_schedule) {
        return cache_.admit(r.items[k].num_embeds, encoder_compute_budget, num_embeds_to_schedule);
    }
    void allocate(const Request& r, std::size_t k) {
        cache_.insert(r.request_id, k, r.items[k].identifier, r.items[k].num_embeds);
    }
    void free_encoder_input(const Request& r, std::size_t k) { cache_.consume(r.request_id, k); }
    void free(const Request& r) {
        for (std::size_t k = 0; k < r.items.size(); ++k) cache_.consume(r.request_id, k);
    }
    std::vector<std::string> get_freed_mm_hashes() { return cache_.take_evicted(); }
    void reset() { cache_.clear(); }

    // What follows is optional: state that the engine happens to show.
    std::int64_t num_free_slots() const { return cache_.free_size(); }
    std::int64_t num_freeable_slots() const { return cache_.free_size() + cache_.idle_size(); }
    std::list<std::string> freeable() const { return cache_.idle(); }
    std::map<std::string, std::vector<std::string>> cached() const {
        std::map<std::string, std::vector<std::string>> result;
        for (const auto& [hash, entry] : cache_.entries()) {
            auto& users = result[hash];
            for (const auto& use : entry.uses) users.push_back(use.first);
        }
        return result;
    }
    std::set<std::size_t> get_cached_input_ids(const Request& r) const {
        std::set<std::size_t> result;
        for (const auto& [hash, entry] : cache_.entries())
            if (const auto use = entry.uses.find(r.request_id); use != entry.uses.end())
                result.insert(use->second.begin(), use->second.end());
        return result;
    }

private:
    EncoderCache cache_;
};

int main() {
    return mmcache::serve<Driver>({"the example engine", "1.0", "", {"allocate_again"}});
}
