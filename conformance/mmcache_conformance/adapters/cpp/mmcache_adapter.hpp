// Serve a C++ encoder cache manager over the mmcache adapter protocol, version 1.
//
// C++17, this one file, no dependency. Write a class with the calls that your engine has:
//
//     struct Manager {
//         explicit Manager(std::int64_t cache_size);
//         bool check_and_update_cache(const mmcache::Request&, std::size_t input_id);
//         bool can_allocate(const mmcache::Request&, std::size_t input_id,
//                           std::int64_t encoder_compute_budget,
//                           std::int64_t num_embeds_to_schedule);
//         void allocate(const mmcache::Request&, std::size_t input_id);
//         void free_encoder_input(const mmcache::Request&, std::size_t input_id);
//         void free(const mmcache::Request&);
//         std::vector<std::string> get_freed_mm_hashes();
//         void reset();
//         // Its state, each optional:
//         std::int64_t num_free_slots() const;
//         std::int64_t num_freeable_slots() const;
//         std::map<std::string, std::set<std::string>> cached() const;  // hash -> request ids
//         std::vector<std::string> freeable() const;                    // oldest first
//         std::set<std::size_t> get_cached_input_ids(const mmcache::Request&) const;
//         // A text that is the same for two managers only if they will behave alike, for `exhaust`:
//         std::string snapshot_state() const;
//     };
//
//     int main() { return mmcache::serve<Manager>({"my engine", "1.2.0", "https://..."}); }
//
// A call or an observable that the class does not have is a capability that it does not have; one
// that it has and that cannot be called so is an error of the compiler. Any container will do. An
// exception fails the call. If the class can be copied, snapshots of it are kept for `exhaust`: a
// copy must share nothing with its original. Standard output belongs to the protocol: log to
// standard error. Licence: Apache-2.0.
#ifndef MMCACHE_ADAPTER_HPP
#define MMCACHE_ADAPTER_HPP

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace mmcache {

// --- what a manager sees -----------------------------------------------------------------------

struct Item {
    std::string identifier;
    std::int64_t num_embeds;
};

struct Request {
    std::string request_id;
    std::vector<Item> items;  // by input_id
};

// Who is tested. `capabilities` are those that cannot be seen, such as "allocate_again".
struct About {
    std::string name;
    std::string version;
    std::string source;  // a link
    std::vector<std::string> capabilities;
};

// The place of a manager that an engine does not have.
struct None {
    explicit None(std::int64_t) {}
};

// --- JSON, as much as the protocol needs, and strictly -----------------------------------------

namespace json {

struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Value;
using Object = std::vector<std::pair<std::string, Value>>;
using Array = std::vector<Value>;

struct Value {
    enum class Kind { null, boolean, integer, real, text, array, object };
    Kind kind = Kind::null;
    bool boolean = false;
    std::int64_t integer = 0;
    std::string text;
    Array array;
    Object object;

    const Value* find(std::string_view key) const {
        for (const auto& [name, value] : object)
            if (name == key) return &value;
        return nullptr;
    }
    const Value& at(std::string_view key) const {
        const Value* value = kind == Kind::object ? find(key) : nullptr;
        if (value == nullptr) throw Error("no field " + std::string(key));
        return *value;
    }
    const std::string& as_text() const { return expect(Kind::text, "a text"), text; }
    std::int64_t as_integer() const { return expect(Kind::integer, "an integer"), integer; }
    const Array& as_array() const { return expect(Kind::array, "a list"), array; }

private:
    void expect(Kind wanted, const char* what) const {
        if (kind != wanted) throw Error(std::string("expected ") + what);
    }
};

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    Value document() {
        Value value = any(0);
        space();
        if (at_ != text_.size()) fail("text after the value");
        return value;
    }

private:
    static constexpr int deepest = 64;
    std::string_view text_;
    std::size_t at_ = 0;

    [[noreturn]] void fail(const char* what) const {
        throw Error(std::string(what) + " at byte " + std::to_string(at_));
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void space() {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                                      text_[at_] == '\n' || text_[at_] == '\r'))
            ++at_;
    }
    bool accept(char c) {
        space();
        if (at_ >= text_.size() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    void need(char c) {
        if (!accept(c)) fail((std::string("expected ") + c).c_str());
    }
    void word(std::string_view letters) {
        if (text_.substr(at_, letters.size()) != letters) fail("unknown word");
        at_ += letters.size();
    }

    Value any(int depth) {
        if (depth > deepest) fail("nested too deeply");
        space();
        Value value;
        switch (peek()) {
            case '{': object(value, depth); break;
            case '[': array(value, depth); break;
            case '"':
                value.kind = Value::Kind::text;
                value.text = string();
                break;
            case 't':
            case 'f':
                value.kind = Value::Kind::boolean;
                value.boolean = peek() == 't';
                word(value.boolean ? "true" : "false");
                break;
            case 'n': word("null"); break;
            default: number(value);
        }
        return value;
    }

    void object(Value& value, int depth) {
        value.kind = Value::Kind::object;
        need('{');
        if (accept('}')) return;
        do {
            space();
            std::string key = string();
            if (value.find(key) != nullptr) fail("a key twice");
            need(':');
            value.object.emplace_back(std::move(key), any(depth + 1));
        } while (accept(','));
        need('}');
    }

    void array(Value& value, int depth) {
        value.kind = Value::Kind::array;
        need('[');
        if (accept(']')) return;
        do value.array.push_back(any(depth + 1));
        while (accept(','));
        need(']');
    }

    void number(Value& value) {
        const bool negative = peek() == '-';
        if (negative) ++at_;
        const std::size_t first = at_;
        value.kind = Value::Kind::integer;
        // Counted downwards, where the least integer has room.
        constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
        std::int64_t n = 0;
        for (; digit(); ++at_) {
            const int d = text_[at_] - '0';
            if (n < (least + d) / 10) fail("integer out of range");
            n = n * 10 - d;
        }
        if (at_ == first) fail("expected a value");
        if (text_[first] == '0' && at_ - first > 1) fail("a leading zero");
        if (!negative && n == least) fail("integer out of range");
        value.integer = negative ? n : -n;
        if (peek() == '.') {
            value.kind = Value::Kind::real;
            ++at_;
            digits();
        }
        if (peek() == 'e' || peek() == 'E') {
            value.kind = Value::Kind::real;
            ++at_;
            if (peek() == '+' || peek() == '-') ++at_;
            digits();
        }
    }
    bool digit() const { return peek() >= '0' && peek() <= '9'; }
    void digits() {
        if (!digit()) fail("expected a digit");
        while (digit()) ++at_;
    }

    std::string string() {
        if (peek() != '"') fail("expected a text");
        ++at_;
        std::string out;
        for (;;) {
            const std::size_t plain = at_;
            while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
                   static_cast<unsigned char>(text_[at_]) >= 0x20)
                ++at_;
            out.append(text_, plain, at_ - plain);
            if (at_ >= text_.size()) fail("a text without end");
            const char c = text_[at_++];
            if (c == '"') return out;
            if (c != '\\') fail("a control character in a text");
            escape(out);
        }
    }

    void escape(std::string& out) {
        const char c = peek();
        ++at_;
        switch (c) {
            case '"': case '\\': case '/': out += c; return;
            case 'b': out += '\b'; return;
            case 'f': out += '\f'; return;
            case 'n': out += '\n'; return;
            case 'r': out += '\r'; return;
            case 't': out += '\t'; return;
            case 'u': break;
            default: fail("unknown escape");
        }
        std::uint32_t code = hex4();
        if (code >= 0xDC00 && code < 0xE000) fail("a lone surrogate");
        if (code >= 0xD800 && code < 0xDC00) {
            if (text_.substr(at_, 2) != "\\u") fail("a lone surrogate");
            at_ += 2;
            const std::uint32_t low = hex4();
            if (low < 0xDC00 || low >= 0xE000) fail("a lone surrogate");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        }
        utf8(out, code);
    }
    std::uint32_t hex4() {
        std::uint32_t code = 0;
        for (int k = 0; k < 4; ++k, ++at_) {
            const char c = peek();
            code <<= 4;
            if (c >= '0' && c <= '9') code += static_cast<std::uint32_t>(c - '0');
            else if (c >= 'a' && c <= 'f') code += static_cast<std::uint32_t>(c - 'a' + 10);
            else if (c >= 'A' && c <= 'F') code += static_cast<std::uint32_t>(c - 'A' + 10);
            else fail("expected a hexadecimal digit");
        }
        return code;
    }
    static void utf8(std::string& out, std::uint32_t code) {
        const auto byte = [&out](std::uint32_t b) { out += static_cast<char>(b); };
        if (code < 0x80) {
            byte(code);
        } else if (code < 0x800) {
            byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F));
        } else if (code < 0x10000) {
            byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
        } else {
            byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F));
            byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F));
        }
    }
};

inline void write(std::string& out, std::string_view text) {
    out += '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
            out += code;
        } else {
            out += c;
        }
    }
    out += '"';
}

template <class Container, class Write>
void write_all(std::string& out, const Container& values, char open, char close, Write each) {
    out += open;
    bool first = true;
    for (const auto& value : values) {
        if (!first) out += ',';
        first = false;
        each(value);
    }
    out += close;
}

template <class Container>
void write_texts(std::string& out, const Container& texts) {
    write_all(out, texts, '[', ']', [&out](const auto& text) { write(out, text); });
}

}  // namespace json

// --- which calls and observables a class has ---------------------------------------------------

namespace detail {

#define MMCACHE_DETECT(name, expression)                                                  \
    template <class M, class = void>                                                      \
    struct has_##name : std::false_type {};                                               \
    template <class M>                                                                    \
    struct has_##name<M, std::void_t<decltype(std::declval<M&>().expression)>> : std::true_type {}

MMCACHE_DETECT(check_and_update_cache,
               check_and_update_cache(std::declval<const Request&>(), std::size_t{}));
MMCACHE_DETECT(can_allocate, can_allocate(std::declval<const Request&>(), std::size_t{},
                                          std::int64_t{}, std::int64_t{}));
MMCACHE_DETECT(allocate, allocate(std::declval<const Request&>(), std::size_t{}));
MMCACHE_DETECT(free_encoder_input,
               free_encoder_input(std::declval<const Request&>(), std::size_t{}));
MMCACHE_DETECT(free, free(std::declval<const Request&>()));
MMCACHE_DETECT(get_freed_mm_hashes, get_freed_mm_hashes());
MMCACHE_DETECT(reset, reset());
MMCACHE_DETECT(num_free_slots, num_free_slots());
MMCACHE_DETECT(num_freeable_slots, num_freeable_slots());
MMCACHE_DETECT(cached, cached());
MMCACHE_DETECT(freeable, freeable());
MMCACHE_DETECT(get_cached_input_ids, get_cached_input_ids(std::declval<const Request&>()));
MMCACHE_DETECT(snapshot_state, snapshot_state());
#undef MMCACHE_DETECT

// Whether a class has a member of this name, whatever it is: beside a second one of the name, the
// name is ambiguous. (Of a final class nothing can be derived, and nothing is said.)
#define MMCACHE_NAMED(name)                                                              \
    struct name##_name {                                                                 \
        int name;                                                                        \
    };                                                                                   \
    template <class M>                                                                   \
    struct name##_both : M, name##_name {};                                              \
    template <class M, class = void>                                                     \
    struct named_##name : std::true_type {};                                             \
    template <class M>                                                                   \
    struct named_##name<M, std::void_t<decltype(&name##_both<M>::name)>> : std::false_type {}

MMCACHE_NAMED(check_and_update_cache);
MMCACHE_NAMED(can_allocate);
MMCACHE_NAMED(allocate);
MMCACHE_NAMED(free_encoder_input);
MMCACHE_NAMED(free);
MMCACHE_NAMED(get_freed_mm_hashes);
MMCACHE_NAMED(reset);
MMCACHE_NAMED(num_free_slots);
MMCACHE_NAMED(num_freeable_slots);
MMCACHE_NAMED(cached);
MMCACHE_NAMED(freeable);
MMCACHE_NAMED(get_cached_input_ids);
MMCACHE_NAMED(snapshot_state);
#undef MMCACHE_NAMED

// A call that is there and cannot be made would be a capability lost in silence.
template <class M>
constexpr void check_members() {
    if constexpr (!std::is_final_v<M>) {
#define MMCACHE_FITS(name, as)                                                           \
    static_assert(has_##name<M>::value || !named_##name<M>::value,                       \
                  "`" #name "` is there and cannot be called as " #as                    \
                  ": wrong arguments, a lost const, or private")
        MMCACHE_FITS(check_and_update_cache, (const mmcache::Request&, std::size_t));
        MMCACHE_FITS(can_allocate,
                     (const mmcache::Request&, std::size_t, std::int64_t, std::int64_t));
        MMCACHE_FITS(allocate, (const mmcache::Request&, std::size_t));
        MMCACHE_FITS(free_encoder_input, (const mmcache::Request&, std::size_t));
        MMCACHE_FITS(free, (const mmcache::Request&));
        MMCACHE_FITS(get_freed_mm_hashes, ());
        MMCACHE_FITS(reset, ());
        MMCACHE_FITS(num_free_slots, ());
        MMCACHE_FITS(num_freeable_slots, ());
        MMCACHE_FITS(cached, ());
        MMCACHE_FITS(freeable, ());
        MMCACHE_FITS(get_cached_input_ids, (const mmcache::Request&));
        MMCACHE_FITS(snapshot_state, ());
#undef MMCACHE_FITS
    }
}

template <class M>
std::vector<std::string> capabilities(const About& about) {
    std::vector<std::string> names = about.capabilities;
    const auto add = [&names](bool has, const char* name) {
        if (has) names.emplace_back(name);
    };
    add(has_check_and_update_cache<M>::value, "check_and_update_cache");
    add(has_can_allocate<M>::value, "can_allocate");
    add(has_allocate<M>::value, "allocate");
    add(has_free_encoder_input<M>::value, "free_encoder_input");
    add(has_free<M>::value, "free");
    add(has_get_freed_mm_hashes<M>::value, "get_freed_mm_hashes");
    add(has_reset<M>::value, "reset");
    add(has_num_free_slots<M>::value, "num_free_slots");
    add(has_num_freeable_slots<M>::value, "num_freeable_slots");
    add(has_cached<M>::value, "cached");
    add(has_freeable<M>::value, "freeable");
    add(has_get_cached_input_ids<M>::value, "held");
    return names;
}

// --- one case ----------------------------------------------------------------------------------

// A manager in the middle of its calls. Several can be alive at a time.
class Player {
public:
    virtual ~Player() = default;
    virtual bool over() const = 0;
    virtual bool failed() const = 0;
    virtual void next() = 0;  // makes the next call and writes its answer
    // A manager like this one, and these calls to be made on it; nothing if it cannot be copied.
    virtual std::unique_ptr<Player> copied(const json::Array& calls) const = 0;
    virtual std::optional<std::string> state() const = 0;
    std::string answers;      // so far, each with a comma behind it
};

template <class M>
class Case : public Player {
public:
    explicit Case(const json::Value& c)
        : manager_(c.at("parameters").at("cache_size").as_integer()),
          calls_(&c.at("calls").as_array()) {
        const json::Array& requests = c.at("parameters").at("requests").as_array();
        auto made = std::make_shared<std::vector<Request>>();
        made->reserve(requests.size());
        for (const json::Value& request : requests) {
            made->push_back({request.at("request_id").as_text(), {}});
            for (const json::Value& item : request.at("items").as_array())
                made->back().items.push_back(
                    {item.at("identifier").as_text(), item.at("num_embeds").as_integer()});
        }
        requests_ = std::move(made);
        const json::Value* watched = c.find("watched");
        if (watched == nullptr || watched->kind == json::Value::Kind::null) return;
        watched_.assign(calls_->size() + 1, false);
        for (const json::Value& k : watched->as_array())
            watched_.at(static_cast<std::size_t>(k.as_integer())) = true;
    }
    Case(const Case& original, const json::Array& calls)
        : manager_(original.manager_), calls_(&calls), requests_(original.requests_) {}

    // All calls are made, or one has thrown.
    bool over() const override { return failed_ || made_ == calls_->size(); }
    bool failed() const override { return failed_; }

    std::unique_ptr<Player> copied([[maybe_unused]] const json::Array& calls) const override {
        if constexpr (std::is_copy_constructible_v<M>)
            return std::make_unique<Case>(*this, calls);
        else
            return nullptr;
    }
    std::optional<std::string> state() const override {
        if constexpr (has_snapshot_state<M>::value)
            return manager_.snapshot_state();
        else
            return std::nullopt;
    }

    void next() override {
        const json::Value& call = (*calls_)[made_++];
        std::string& out = answers;
        const std::size_t begin = out.size();
        try {
            out += "{\"returns\":";
            make(out, call);
            if (watched_.empty() || watched_[made_ - 1]) {
                out += ",\"observed\":";
                observe(out);
            }
            out += "},";
        } catch (const json::Error&) {
            throw;
        } catch (const std::exception& error) {
            fail(out, begin, error.what());
        } catch (...) {
            fail(out, begin, "something was thrown that is no std::exception");
        }
    }

private:
    M manager_;
    const json::Array* calls_;
    std::shared_ptr<const std::vector<Request>> requests_;  // one for all copies
    std::vector<bool> watched_;  // after which calls the state is asked for; all, if empty
    std::size_t made_ = 0;
    bool failed_ = false;

    // The answer that began there says instead that its call failed.
    void fail(std::string& out, std::size_t begin, const char* why) {
        failed_ = true;
        out.resize(begin);
        out += "{\"error\":";
        json::write(out, why);
        out += "},";
    }

    const Request& request(const json::Value& call) const {
        const std::string& id = call.at("request").as_text();
        for (const Request& r : *requests_)
            if (r.request_id == id) return r;
        throw json::Error("no request " + id);
    }
    std::size_t input(const json::Value& call) const {
        const std::int64_t k = call.at("input_id").as_integer();
        if (k < 0 || static_cast<std::size_t>(k) >= request(call).items.size())
            throw json::Error("no such input_id");
        return static_cast<std::size_t>(k);
    }

    void make(std::string& out, const json::Value& call) {
        const std::string& op = call.at("op").as_text();
        const auto boolean = [&out](bool value) { out += value ? "true" : "false"; };
        if constexpr (has_check_and_update_cache<M>::value)
            if (op == "check_and_update_cache")
                return boolean(manager_.check_and_update_cache(request(call), input(call)));
        if constexpr (has_can_allocate<M>::value)
            if (op == "can_allocate")
                return boolean(
                    manager_.can_allocate(request(call), input(call),
                                          call.at("encoder_compute_budget").as_integer(),
                                          call.at("num_embeds_to_schedule").as_integer()));
        if constexpr (has_get_freed_mm_hashes<M>::value)
            if (op == "get_freed_mm_hashes")
                return json::write_texts(out, manager_.get_freed_mm_hashes());
        effect(op, call);
        out += "null";
    }
    void effect(const std::string& op, const json::Value& call) {
        if constexpr (has_allocate<M>::value)
            if (op == "allocate") return void(manager_.allocate(request(call), input(call)));
        if constexpr (has_free_encoder_input<M>::value)
            if (op == "free_encoder_input")
                return void(manager_.free_encoder_input(request(call), input(call)));
        if constexpr (has_free<M>::value)
            if (op == "free") return void(manager_.free(request(call)));
        if constexpr (has_reset<M>::value)
            if (op == "reset") return void(manager_.reset());
        throw json::Error("no call " + op);
    }

    void observe(std::string& out) {
        bool first = true;
        [[maybe_unused]] const auto name = [&](const char* text) {
            out += first ? "\"" : ",\"";
            first = false;
            out += text;
            out += "\":";
        };
        out += '{';
        if constexpr (has_num_free_slots<M>::value)
            name("num_free_slots"), out += std::to_string(manager_.num_free_slots());
        if constexpr (has_num_freeable_slots<M>::value)
            name("num_freeable_slots"), out += std::to_string(manager_.num_freeable_slots());
        if constexpr (has_cached<M>::value) {
            name("cached");
            json::write_all(out, manager_.cached(), '{', '}', [&](const auto& entry) {
                json::write(out, entry.first);
                out += ':';
                json::write_texts(out, sorted<std::string>(entry.second));
            });
        }
        if constexpr (has_freeable<M>::value)
            name("freeable"), json::write_texts(out, manager_.freeable());
        if constexpr (has_get_cached_input_ids<M>::value)
            name("held"), held(out);
        out += '}';
    }
    void held(std::string& out) {
        std::vector<std::pair<const Request*, std::vector<std::size_t>>> holders;
        for (const Request& r : *requests_) {
            auto inputs = sorted<std::size_t>(manager_.get_cached_input_ids(r));
            if (!inputs.empty()) holders.emplace_back(&r, std::move(inputs));
        }
        json::write_all(out, holders, '{', '}', [&out](const auto& holder) {
            json::write(out, holder.first->request_id);
            out += ':';
            json::write_all(out, holder.second, '[', ']',
                            [&out](std::size_t k) { out += std::to_string(k); });
        });
    }
    template <class T, class Container>
    static std::vector<T> sorted(const Container& values) {
        std::vector<T> result(std::begin(values), std::end(values));
        std::sort(result.begin(), result.end());
        return result;
    }
};

template <class EncoderCache, class EncoderDecoder>
std::unique_ptr<Player> player(const json::Value& c) {
    const std::string& manager = c.at("manager").as_text();
    if constexpr (!std::is_same_v<EncoderCache, None>)
        if (manager == "encoder_cache") return std::make_unique<Case<EncoderCache>>(c);
    if constexpr (!std::is_same_v<EncoderDecoder, None>)
        if (manager == "encoder_decoder") return std::make_unique<Case<EncoderDecoder>>(c);
    throw json::Error("no manager " + manager);
}

// The first call of each, the second of each, and so on, while all of them are alive.
inline void play(const std::vector<std::unique_ptr<Player>>& players) {
    for (bool made = true; made;) {
        made = false;
        for (const auto& one : players) {
            if (one->over()) continue;
            one->next();
            made = true;
        }
    }
}

inline void write_answers(std::string& out, const Player& one) {
    out += '[';
    out.append(one.answers, 0, one.answers.empty() ? 0 : one.answers.size() - 1);
    out += ']';
}

inline void introduce(std::string& out, const About& about) {
    out += "{\"protocol\":1,\"implementation\":{\"language\":\"c++\",\"name\":";
    json::write(out, about.name);
    const auto optional = [&out](const char* key, const std::string& value) {
        if (value.empty()) return;
        out += key;
        json::write(out, value);
    };
    optional(",\"version\":", about.version);
    optional(",\"source\":", about.source);
    out += "},\"capabilities\":";
}

// Managers as they were, by the numbers that the harness gave them.
using Snapshots = std::map<std::int64_t, std::unique_ptr<Player>>;
const json::Array no_calls;

inline std::unique_ptr<Player> restored(const Snapshots& kept, const json::Value& number,
                                        const json::Array& calls) {
    const auto found = kept.find(number.as_integer());
    if (found == kept.end())
        throw json::Error("no snapshot " + std::to_string(number.as_integer()));
    return found->second->copied(calls);
}

template <class EncoderCache, class EncoderDecoder>
bool reply(std::string& out, const std::string& line, const About& about, Snapshots& kept) {
    const json::Value request = json::Parser(line).document();
    const std::string& command = request.at("cmd").as_text();
    if (command == "stop") return false;
    if (command == "start") {
        if (request.at("protocol").as_integer() != 1) throw json::Error("another protocol");
        introduce(out, about);
        std::vector<std::pair<const char*, std::vector<std::string>>> managers;
        if (!std::is_same_v<EncoderCache, None>)
            managers.emplace_back("encoder_cache", capabilities<EncoderCache>(about));
        if (!std::is_same_v<EncoderDecoder, None>)
            managers.emplace_back("encoder_decoder", capabilities<EncoderDecoder>({}));
        json::write_all(out, managers, '{', '}', [&out](const auto& manager) {
            json::write(out, manager.first);
            out += ':';
            json::write_texts(out, manager.second);
        });
        constexpr bool copies = std::is_copy_constructible_v<EncoderCache> &&
                                std::is_copy_constructible_v<EncoderDecoder>;
        out += copies ? ",\"features\":[\"beside\",\"snapshots\",\"watched\"]}"
                      : ",\"features\":[\"beside\",\"watched\"]}";
        return true;
    }
    if (command != "run") throw json::Error("no command " + command);
    const std::string seq = "{\"seq\":" + std::to_string(request.at("seq").as_integer());
    try {
        if (const json::Value* drop = request.find("drop"))
            for (const json::Value& number : drop->as_array()) kept.erase(number.as_integer());
        const json::Value* restore = request.find("restore");
        const json::Value* snapshot = request.find("snapshot");
        std::vector<std::unique_ptr<Player>> players;
        players.push_back(restore == nullptr
                              ? player<EncoderCache, EncoderDecoder>(request.at("case"))
                              : restored(kept, *restore, request.at("case").at("calls").as_array()));
        const json::Value* beside = request.find("beside");
        if (beside != nullptr)
            for (const json::Value& c : beside->as_array())
                players.push_back(player<EncoderCache, EncoderDecoder>(c));
        play(players);
        out += seq + ",\"answers\":";
        write_answers(out, *players[0]);
        if ((restore != nullptr || snapshot != nullptr) && !players[0]->failed()) {
            if (const auto state = players[0]->state()) {
                out += ",\"state\":";
                json::write(out, *state);
            }
            if (snapshot != nullptr)
                if (auto copy = players[0]->copied(no_calls))
                    kept[snapshot->as_integer()] = std::move(copy);
        }
        if (beside != nullptr) {
            out += ",\"beside\":";
            players.erase(players.begin());
            json::write_all(out, players, '[', ']',
                            [&out](const auto& one) { write_answers(out, *one); });
        }
    } catch (const std::exception& error) {
        out = seq + ",\"errored\":";
        json::write(out, error.what());
    }
    out += '}';
    return true;
}

// One line in, one line out, until `reply` says that it is over.
template <class Reply>
int serve_lines(Reply reply) {
    std::ios::sync_with_stdio(false);
    std::string line, out;
    while (std::getline(std::cin, line)) {
        out.clear();
        try {
            if (!reply(out, line)) break;
        } catch (const std::exception& error) {
            std::cerr << "not a request of the adapter protocol: " << error.what() << std::endl;
            return 1;
        }
        out += '\n';
        std::cout.write(out.data(), static_cast<std::streamsize>(out.size()));
        std::cout.flush();
    }
    return 0;
}

}  // namespace detail

// Answer requests until `stop` or the end of the input. The exit code of `main`.
template <class EncoderCache, class EncoderDecoder = None>
int serve(const About& about) {
    detail::check_members<EncoderCache>();
    detail::check_members<EncoderDecoder>();
    detail::Snapshots kept;
    return detail::serve_lines([&](std::string& out, const std::string& line) {
        return detail::reply<EncoderCache, EncoderDecoder>(out, line, about, kept);
    });
}

}  // namespace mmcache

#endif
