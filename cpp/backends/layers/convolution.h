// conv2d (a cross-correlation, as every framework means it) and conv_transpose2d, by im2col and matrix
// products.
#pragma once

#include "layers/convolved.h"
#include "layers/correlation.h"

namespace timetrial::layers {

template <typename T, typename Product>
class Convolution : public Convolved<T> {
  public:
    Convolution(const Window& window, int64_t groups) : correlation_(window, groups) {}

    void prepare(const Edge<T>& input, const Edge<T>& output, int threads) override {
        correlation_.prepare(input.shape, output.shape, threads, *this->rooms_);
        this->prepare_parameters(output.shape.channels, threads);
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        correlation_.forward(this->weight(), this->bias(), input.value, output.value, false, images, thread);
    }

    void backward_weights(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        T* const bias_gradient = this->begin_bias_gradient(thread);
        correlation_.keep_weight_gradient(input.value, output.gradient, images, thread,
                                          [&](int64_t c, const T* dy, int64_t count) {
                                              if (this->bias()) bias_gradient[c] += sum_of(dy, count);
                                          });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                       bool add) override {
        correlation_.backward(this->weight(), output.gradient, input.gradient, add, images, thread);
    }

    bool sums_at_once() const override { return correlation_.sums_at_once(); }

  protected:
    // A thread's own, of its images: taps x output channels, for one group.
    T* own_weight_gradient(int thread) { return correlation_.own_weight_gradient(thread); }

  private:
    void sum_weight_gradient(Share rows, T* to) override { correlation_.sum_weight_gradient(rows, to); }

    Correlation<T, Product> correlation_;
};

// A convolution whose output is this layer's input: forward is its way back, and its way back a convolution.
template <typename T, typename Product>
class ConvTranspose final : public Convolved<T> {
  public:
    explicit ConvTranspose(const Window& window) : correlation_(window, 1) {}

    void prepare(const Edge<T>& input, const Edge<T>& output, int threads) override {
        correlation_.prepare(output.shape, input.shape, threads, *this->rooms_);
        this->prepare_parameters(output.shape.channels, threads);
    }

    void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        for_each_channel(output.shape, images, [&](int64_t c, int64_t first, int64_t count) {
            std::fill_n(output.value + first, count, this->bias() ? this->bias()[c] : T(0));
        });
        correlation_.backward(this->weight(), input.value, output.value, true, images, thread);
    }

    void backward_weights(const Edge<T>& input, const Edge<T>& output, Share images, int thread) override {
        correlation_.keep_weight_gradient(output.gradient, input.value, images, thread,
                                          [](int64_t, const T*, int64_t) {});
        if (!this->bias()) return;
        T* const bias_gradient = this->begin_bias_gradient(thread);
        for_each_channel(output.shape, images, [&](int64_t c, int64_t first, int64_t count) {
            bias_gradient[c] = sum_of(output.gradient + first, count);
        });
    }

    void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                       bool add) override {
        correlation_.forward(this->weight(), nullptr, output.gradient, input.gradient, add, images, thread);
    }

    bool sums_at_once() const override { return correlation_.sums_at_once(); }

  private:
    void sum_weight_gradient(Share rows, T* to) override { correlation_.sum_weight_gradient(rows, to); }

    Correlation<T, Product> correlation_;
};

}  // namespace timetrial::layers
