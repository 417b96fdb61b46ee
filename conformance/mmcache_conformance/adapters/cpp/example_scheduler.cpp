// The adapter of the example engine as a whole: scheduler, cache and worker.
//
//     c++ -std=c++17 -O2 -o engine example_scheduler.cpp
//     mmcache-conformance run cmd:./engine
#include "example_scheduler.hpp"

int main() {
    return mmcache::serve_engine<Engine>(
        {"the example scheduler", "1.0", "", {"priority", "prefix_caching", "lookahead", "whole_items"}});
}
