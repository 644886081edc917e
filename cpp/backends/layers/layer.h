// What a layer is to the engine. Layers are stateless about the batch: the engine owns all activations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layers/buffer.h"
#include "layers/threads.h"

namespace timetrial::layers {

// Extents of one node's output for the whole batch. Images: C x N x H x W. Flat data: N x F (channels = F,
// height = width = 1, `flat`).
struct Shape {
    int64_t batch = 0;
    int64_t channels = 0;
    int64_t height = 1;
    int64_t width = 1;
    bool flat = false;

    int64_t plane() const { return height * width; }
    int64_t features() const { return channels * plane(); }
    int64_t size() const { return batch * features(); }
};

// Where a layer reads and writes. Gradients are with respect to the loss.
template <typename T>
struct Edge {
    Shape shape;
    T* value = nullptr;
    T* gradient = nullptr;  // null: nobody upstream learns
};

template <typename T>
struct Parameter {
    std::string name;
    std::string velocity_name;
    std::vector<int64_t> shape;
    const float* initial = nullptr;
    Buffer<T> value;
    Buffer<T> gradient;
    Buffer<T> velocity;
    int64_t size() const {
        int64_t n = 1;
        for (const int64_t extent : shape) n *= extent;
        return n;
    }
};

template <typename T>
class Layer {
  public:
    virtual ~Layer() = default;

    // Once, before any step: room for what each thread needs of its own.
    virtual void prepare(const Edge<T>& input, const Edge<T>& output, int threads) {
        (void)input, (void)output, (void)threads;
    }

    // The images [share.begin, share.end): output value from input value.
    virtual void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) = 0;

    // The same images: parameter gradients that are cheaper per image, into the thread's own store.
    virtual void backward_weights(const Edge<T>& input, const Edge<T>& output, Share images, int thread) {
        (void)input, (void)output, (void)images, (void)thread;
    }

    // The same images: input gradient from output gradient, added to what is there where `add`. Not called
    // where nobody upstream learns.
    virtual void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                               bool add) = 0;

    // All images, one share of each parameter: the gradient, into Parameter::gradient. `each` is called with
    // the part [begin, end) that is complete, while it is still in the cache.
    using Each = std::function<void(Parameter<T>&, int64_t begin, int64_t end)>;
    virtual void parameter_gradients(const Edge<T>& input, const Edge<T>& output, int thread, int threads,
                                     const Each& each) {
        (void)input, (void)output, (void)thread, (void)threads, (void)each;
    }

    std::vector<std::unique_ptr<Parameter<T>>> parameters;
};

}  // namespace timetrial::layers
