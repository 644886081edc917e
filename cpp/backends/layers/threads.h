// A pool of threads that run one function each and meet again. The caller is thread 0.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace timetrial::layers {

// An even share [begin, end) of `n` things for one of several threads.
struct Share {
    int64_t begin;
    int64_t end;
};

inline Share share_of(int64_t n, int thread, int threads) {
    return {n * thread / threads, n * (thread + 1) / threads};
}

class ThreadPool {
  public:
    explicit ThreadPool(int threads) : threads_(threads) {
        for (int thread = 1; thread < threads; ++thread) {
            workers_.emplace_back([this, thread] { work(thread); });
            pthread_setname_np(workers_.back().native_handle(), "tt-worker");
        }
    }

    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    ~ThreadPool() {
        stopping_ = true;
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        for (auto& worker : workers_) worker.join();
    }

    int size() const { return threads_; }

    // Calls task(thread) on every thread and returns when all are done. The task must not throw.
    void run(const std::function<void(int)>& task) {
        if (threads_ == 1) return task(0);
        task_ = &task;
        pending_.store(threads_ - 1, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        task(0);
        for (int spin = 0; spin < spins && pending_.load(std::memory_order_acquire) != 0; ++spin) {
            __builtin_ia32_pause();
        }
        for (int left = pending_.load(std::memory_order_acquire); left != 0;
             left = pending_.load(std::memory_order_acquire)) {
            pending_.wait(left, std::memory_order_acquire);
        }
    }

  private:
    // About ten microseconds: the gap between the two regions of a step, without a trip to the kernel.
    // Beyond that an idle thread sleeps: a pool that spins slows whoever shares the machine.
    static constexpr int spins = 400;

    void work(int thread) {
        uint32_t seen = 0;
        while (true) {
            for (int spin = 0; spin < spins && round_.load(std::memory_order_acquire) == seen; ++spin) {
                __builtin_ia32_pause();
            }
            round_.wait(seen, std::memory_order_acquire);
            ++seen;
            if (stopping_) return;
            (*task_)(thread);
            if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
        }
    }

    const int threads_;
    const std::function<void(int)>* task_ = nullptr;
    std::atomic<uint32_t> round_{0};
    std::atomic<int> pending_{0};
    std::atomic<bool> stopping_{false};
    std::vector<std::thread> workers_;
};

}  // namespace timetrial::layers
