// A pool of threads that run one function each and meet again. The caller is thread 0. What one of them
// throws is thrown by run(), once all of them are done with the task.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
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

inline int64_t largest_share(int64_t n, int threads) { return (n + threads - 1) / threads; }

class ThreadPool {
  public:
    // std::runtime_error: the machine does not give so many threads.
    explicit ThreadPool(int threads) : threads_(threads) {
        try {
            for (int thread = 1; thread < threads; ++thread) {
                workers_.emplace_back([this, thread] { work(thread); });
                pthread_setname_np(workers_.back().native_handle(), "tt-worker");
            }
        } catch (const std::system_error& error) {
            end();
            throw std::runtime_error("thread " + std::to_string(workers_.size() + 2) + " of " +
                                     std::to_string(threads) + " could not be started: " + error.what() +
                                     "; the limit of processes (ulimit -u) or of memory is too low");
        }
    }

    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    ~ThreadPool() { end(); }

    int size() const { return threads_; }

    // Calls task(thread) on every thread and returns when all are done. Throws what the first of them threw.
    void run(const std::function<void(int)>& task) {
        if (threads_ == 1) return task(0);
        task_ = &task;
        pending_.store(threads_ - 1, std::memory_order_relaxed);
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        attempt(0);
        for (int spin = 0; spin < spins && pending_.load(std::memory_order_acquire) != 0; ++spin) {
            __builtin_ia32_pause();
        }
        for (int left = pending_.load(std::memory_order_acquire); left != 0;
             left = pending_.load(std::memory_order_acquire)) {
            pending_.wait(left, std::memory_order_acquire);
        }
        if (failed_.load(std::memory_order_relaxed)) [[unlikely]] {
            failed_ = false;
            std::rethrow_exception(std::exchange(error_, nullptr));
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
            attempt(thread);
            if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
        }
    }

    void attempt(int thread) noexcept {
        try {
            (*task_)(thread);
        } catch (...) {
            if (!failed_.exchange(true)) error_ = std::current_exception();
        }
    }

    void end() {
        stopping_ = true;
        round_.fetch_add(1, std::memory_order_release);
        round_.notify_all();
        for (auto& worker : workers_) worker.join();
    }

    const int threads_;
    const std::function<void(int)>* task_ = nullptr;
    std::exception_ptr error_;  // of the first that failed; its writer is done before run() looks
    std::atomic<uint32_t> round_{0};
    std::atomic<int> pending_{0};
    std::atomic<bool> failed_{false};
    std::atomic<bool> stopping_{false};
    std::vector<std::thread> workers_;
};

}  // namespace timetrial::layers
