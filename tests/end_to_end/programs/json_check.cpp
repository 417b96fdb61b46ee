// One JSON text a line in; "ok", and what a text says in hexadecimal, or "error" out.
#include "mmcache_adapter.hpp"

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        try {
            const mmcache::json::Value value = mmcache::json::Parser(line).document();
            std::cout << "ok";
            if (value.kind == mmcache::json::Value::Kind::integer) std::cout << ' ' << value.integer;
            if (value.kind == mmcache::json::Value::Kind::text) {
                std::string out;
                mmcache::json::write(out, value.text);
                std::cout << ' ' << out;
            }
            std::cout << '\n';
        } catch (const mmcache::json::Error&) {
            std::cout << "error\n";
        }
    }
}
