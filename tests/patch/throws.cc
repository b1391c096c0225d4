// SPDX-License-Identifier: MIT
//
// C++ exceptions through patched code, from several threads. The unwinder reads tables and calls
// dl_iterate_phdr; pthread_create and thread exit run through stubs.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static int caught(int n) {
    try {
        if (n == 0) throw std::runtime_error("bottom");
        return caught(n - 1) + 1;
    } catch (const std::runtime_error &e) {
        if (n < 5) throw;
        return std::string(e.what()) == "bottom" ? n : -1000;
    }
}

int main() {
    std::vector<std::thread> threads;
    int results[8] = {};
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&results, i] {
            for (int k = 0; k < 200; k++) results[i] = caught(10);
        });
    for (auto &t : threads) t.join();
    for (int r : results)
        if (r != 10) return 1;
    std::puts("caught");
    return 0;
}
