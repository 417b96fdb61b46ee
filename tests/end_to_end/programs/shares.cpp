// Drivers whose copies are none: with -DSHARES two copies of a manager are one manager. Without it
// the manager cannot be copied at all, and no snapshots are offered.
#include <memory>

#include "example_engine.hpp"
#include "mmcache_adapter.hpp"

using mmcache::Request;

class Driver {
public:
    explicit Driver(std::int64_t cache_size) : cache_(new EncoderCache(cache_size)) {}

    bool check_and_update_cache(const Request& r, std::size_t k) {
        return cache_->find(r.request_id, k, r.items[k].identifier);
    }
    bool can_allocate(const Request& r, std::size_t k, std::int64_t budget, std::int64_t pending) {
        return cache_->admit(r.items[k].num_embeds, budget, pending);
    }
    void allocate(const Request& r, std::size_t k) {
        cache_->insert(r.request_id, k, r.items[k].identifier, r.items[k].num_embeds);
    }
    void free_encoder_input(const Request& r, std::size_t k) { cache_->consume(r.request_id, k); }
    std::vector<std::string> get_freed_mm_hashes() { return cache_->take_evicted(); }
    std::list<std::string> freeable() const { return cache_->idle(); }

private:
#ifdef SHARES
    std::shared_ptr<EncoderCache> cache_;
#else
    std::unique_ptr<EncoderCache> cache_;
#endif
};

int main() { return mmcache::serve<Driver>({"a driver", "", "", {"allocate_again"}}); }
