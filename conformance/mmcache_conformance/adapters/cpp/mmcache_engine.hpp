// Serve a whole C++ engine over the mmcache adapter protocol: scheduler, ledger and worker.
//
// C++17, this file and mmcache_adapter.hpp. Write a class around your scheduler:
//
//     struct Engine {
//         explicit Engine(const mmcache::EngineSettings&);
//         void submit(const mmcache::EngineRequest&);
//         mmcache::Pass step();            // schedule, the worker's step, update
//         void abort(const std::string& request_id);  // optional
//         void reset();                               // optional: ledger and worker
//     };
//
//     int main() { return mmcache::serve_engine<Engine>({"my engine", "1.2.0", "", {"priority"}}); }
//
// `capabilities` are those of docs/adapter-protocol.md that cannot be seen: "priority",
// "prefix_caching", "lookahead", "whole_items". An exception out of `step` ends the workload, and is
// told. No worker needs to compute anything: that it holds a hash is all. Licence: Apache-2.0.
#ifndef MMCACHE_ENGINE_HPP
#define MMCACHE_ENGINE_HPP

#include <set>

#include "mmcache_adapter.hpp"

namespace mmcache {

struct EngineItem {
    std::string identifier;
    std::int64_t position;  // of its first token in the prompt
    std::int64_t num_embeds;  // one embedding a token
    std::int64_t end() const { return position + num_embeds; }
};

struct EngineRequest {
    std::string request_id;
    std::int64_t priority;  // the lower, the sooner
    std::vector<EngineItem> items;
    std::int64_t num_prompt_tokens;
    std::int64_t max_tokens;
    std::string text;  // under one name, the text tokens at equal positions are equal
};

// Sizes are in embeddings, lengths in tokens.
struct EngineSettings {
    std::int64_t cache_size, encoder_budget;
    std::int64_t num_blocks, block_size;  // blocks that requests can use
    std::int64_t chunk_size;              // the most tokens of one request in one pass
    std::int64_t token_budget;            // the most tokens of all in one pass
    bool priority;                        // else first come, first served
    bool prefix_caching;
    std::int64_t lookahead;  // how many tokens past the scheduled ones a drafter reads
    bool chunked_items;      // whether an item may be computed in several passes
};

// What one pass did, and what is left after the worker's step and the update.
struct Pass {
    std::map<std::string, std::int64_t> num_scheduled_tokens;
    std::map<std::string, std::int64_t> starts;  // the first token that is computed
    std::map<std::string, std::vector<std::size_t>> scheduled_encoder_inputs;
    std::vector<std::string> report;       // what the worker was told to drop
    std::vector<std::string> cached;       // when the report is made
    std::vector<std::string> held_before;  // by the worker, when its step begins
    std::vector<std::string> worker;       // held by it afterwards
    std::vector<std::string> missed;       // gathered and not held
    std::vector<std::string> preempted, running, waiting;
    std::map<std::string, std::vector<std::string>> references;  // hash -> requests
    std::vector<std::string> without_payload;
    std::vector<std::pair<std::string, std::size_t>> allocated, hits;
};

namespace detail {

template <class E, class = void>
struct can_abort : std::false_type {};
template <class E>
struct can_abort<E, std::void_t<decltype(std::declval<E&>().abort(std::string{}))>>
    : std::true_type {};
template <class E, class = void>
struct can_reset : std::false_type {};
template <class E>
struct can_reset<E, std::void_t<decltype(std::declval<E&>().reset())>> : std::true_type {};

inline bool truth(const json::Value& value) {
    if (value.kind != json::Value::Kind::boolean) throw json::Error("expected true or false");
    return value.boolean;
}

inline EngineSettings settings(const json::Value& v) {
    const auto number = [&v](const char* name) { return v.at(name).as_integer(); };
    const json::Value* lookahead = v.find("lookahead");
    const json::Value* chunked = v.find("chunked_items");
    return {number("cache_size"),
            number("encoder_budget"),
            number("num_blocks"),
            number("block_size"),
            number("chunk_size"),
            number("token_budget"),
            v.at("policy").as_text() == "priority",
            truth(v.at("prefix_caching")),
            lookahead == nullptr ? 0 : lookahead->as_integer(),
            chunked == nullptr || truth(*chunked)};
}

inline EngineRequest engine_request(const json::Value& v) {
    EngineRequest request{v.at("request_id").as_text(),
                          v.at("priority").as_integer(),
                          {},
                          v.at("num_prompt_tokens").as_integer(),
                          v.at("max_tokens").as_integer(),
                          v.at("text").as_text()};
    for (const json::Value& item : v.at("items").as_array())
        request.items.push_back({item.at("identifier").as_text(), item.at("position").as_integer(),
                                 item.at("num_embeds").as_integer()});
    return request;
}

template <class Map, class Each>
void write_map(std::string& out, const char* name, const Map& map, Each each) {
    out += name;
    json::write_all(out, map, '{', '}', [&](const auto& entry) {
        json::write(out, entry.first);
        out += ':';
        each(entry.second);
    });
}

inline void write_pass(std::string& out, const Pass& pass) {
    const auto number = [&out](auto n) { out += std::to_string(n); };
    const auto texts = [&out](const char* name, const std::vector<std::string>& list) {
        out += name;
        json::write_texts(out, list);
    };
    const auto places = [&](const char* name, const auto& list) {
        out += name;
        json::write_all(out, list, '[', ']', [&](const auto& place) {
            out += '[';
            json::write(out, place.first);
            out += ',';
            number(place.second);
            out += ']';
        });
    };
    write_map(out, "{\"num_scheduled_tokens\":", pass.num_scheduled_tokens, number);
    write_map(out, ",\"starts\":", pass.starts, number);
    write_map(out, ",\"scheduled_encoder_inputs\":", pass.scheduled_encoder_inputs,
              [&](const auto& ids) { json::write_all(out, ids, '[', ']', number); });
    texts(",\"report\":", pass.report);
    texts(",\"cached\":", pass.cached);
    texts(",\"held_before\":", pass.held_before);
    texts(",\"worker\":", pass.worker);
    texts(",\"missed\":", pass.missed);
    texts(",\"preempted\":", pass.preempted);
    texts(",\"running\":", pass.running);
    texts(",\"waiting\":", pass.waiting);
    write_map(out, ",\"references\":", pass.references,
              [&](const auto& requests) { json::write_texts(out, requests); });
    texts(",\"without_payload\":", pass.without_payload);
    places(",\"allocated\":", pass.allocated);
    places(",\"hits\":", pass.hits);
}

// The passes of one workload, each with a comma behind it.
template <class Engine>
class EngineCase {
public:
    explicit EngineCase(const json::Value& c) : engine_(settings(c.at("engine"))) {
        for (const json::Value& call : c.at("calls").as_array()) make(call);
    }
    std::string passes;

private:
    Engine engine_;
    bool over_ = false, idle_ = true;
    Pass last_;

    void make(const json::Value& call) {
        const std::string& op = call.at("op").as_text();
        if (over_) return;
        if (op == "submit") {
            engine_.submit(engine_request(call));
        } else if (op == "step" || op == "finish") {
            idle_ = false;
            for (auto n = call.at("times").as_integer(); n > 0 && !over_; --n) {
                if (op == "finish" && idle_) break;
                step();
            }
        } else {
            change(op, call);
        }
    }
    void change(const std::string& op, const json::Value& call) {
        if constexpr (can_abort<Engine>::value)
            if (op == "abort") return void(engine_.abort(call.at("request").as_text()));
        if constexpr (can_reset<Engine>::value)
            if (op == "reset") return void(engine_.reset());
        throw json::Error("no call " + op);
    }
    void step() {
        std::string failed;
        try {
            last_ = engine_.step();
        } catch (const std::exception& error) {
            failed = error.what();
            last_ = Pass{};
        }
        write_pass(passes, last_);
        if (!failed.empty()) {
            passes += ",\"error\":";
            json::write(passes, failed);
        }
        passes += "},";
        over_ = !failed.empty() || !last_.missed.empty();
        idle_ = last_.running.empty() && last_.waiting.empty();
    }
};

template <class Engine>
bool engine_reply(std::string& out, const std::string& line, const About& about) {
    const json::Value request = json::Parser(line).document();
    const std::string& command = request.at("cmd").as_text();
    if (command == "stop") return false;
    if (command == "start") {
        if (request.at("protocol").as_integer() != 1) throw json::Error("another protocol");
        std::vector<std::string> names = about.capabilities;
        if (can_abort<Engine>::value) names.emplace_back("abort");
        if (can_reset<Engine>::value) names.emplace_back("reset");
        introduce(out, about);
        out += "{\"engine\":";
        json::write_texts(out, names);
        out += "}}";
        return true;
    }
    if (command != "workload") throw json::Error("no command " + command);
    const std::string seq = "{\"seq\":" + std::to_string(request.at("seq").as_integer());
    try {
        EngineCase<Engine> played(request.at("case"));
        if (!played.passes.empty()) played.passes.pop_back();
        out += seq + ",\"passes\":[" + played.passes + "]}";
    } catch (const std::exception& error) {
        out = seq + ",\"errored\":";
        json::write(out, error.what());
        out += '}';
    }
    return true;
}

}  // namespace detail

// Answer requests until `stop` or the end of the input. The exit code of `main`.
template <class Engine>
int serve_engine(const About& about) {
    return detail::serve_lines([&about](std::string& out, const std::string& line) {
        return detail::engine_reply<Engine>(out, line, about);
    });
}

}  // namespace mmcache

#endif
