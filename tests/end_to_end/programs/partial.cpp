// An engine that has little, shows nothing, and throws.
#include "mmcache_adapter.hpp"

struct Partial {
    explicit Partial(std::int64_t) {}
    void allocate(const mmcache::Request& request, std::size_t) {
        if (request.items.size() > 1) throw 42;
        throw std::runtime_error("no \"room\"\n");
    }
    std::vector<std::string> get_freed_mm_hashes() { return {}; }
};

struct Credits {
    explicit Credits(std::int64_t cache_size) : free_(cache_size) {}
    void allocate(const mmcache::Request& r, std::size_t k) { free_ -= r.items[k].num_embeds; }
    std::int64_t num_free_slots() const { return free_; }

private:
    std::int64_t free_;
};

int main() {
    return mmcache::serve<Partial, Credits>({"partial", "", "https://example.org/partial", {}});
}
