// What a layer is to the engine. Layers are stateless about the batch: the engine owns all activations.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "layers/algorithm.h"
#include "layers/buffer.h"
#include "layers/room.h"
#include "layers/threads.h"

namespace timetrial::layers {

// Extents of one node's output for the whole batch. Images: C x N x H x W. Flat data: N x F (channels = F,
// height = width = 1, `flat`). Sequences: N x T x F, which is flat data with channels = T F, in `steps`
// parts.
struct Shape {
    int64_t batch = 0;
    int64_t channels = 0;
    int64_t height = 1;
    int64_t width = 1;
    bool flat = false;
    int64_t steps = 1;

    int64_t plane() const { return height * width; }
    int64_t features() const { return channels * plane(); }
    int64_t size() const { return batch * features(); }
    int64_t step_features() const { return channels / steps; }
    bool operator==(const Shape&) const = default;
};

// How many steps of a sample count, as its batch says.
template <typename T>
int64_t checked_length(T length, int64_t sample, int64_t steps) {
    if (length >= 1 && length <= static_cast<T>(steps)) return static_cast<int64_t>(length);
    throw std::invalid_argument("length " + std::to_string(static_cast<int64_t>(length)) + " of sample " +
                                std::to_string(sample) + " is outside 1 to " + std::to_string(steps));
}

// Where a layer reads and writes. Gradients are with respect to the loss.
template <typename T>
struct Edge {
    Shape shape;
    T* value = nullptr;
    T* gradient = nullptr;  // null: nobody upstream learns
};

// An output that a layer reads. Several layers may read the same: the first one to go back writes its
// gradient, and the others add to it.
template <typename T>
struct Input {
    const Edge<T>* edge;
    bool add = false;
};
template <typename T>
using Inputs = std::span<const Input<T>>;

// Some channels of images as if there were no others: for layers that treat each value alone.
template <typename T>
class Channels {
  public:
    static constexpr std::size_t most_inputs = 4;

    Channels(Inputs<T> inputs, const Edge<T>& output, Share channels)
        : output_(part_of(output, channels)), count_(inputs.size()) {
        for (std::size_t i = 0; i < count_; ++i) {
            edges_[i] = part_of(*inputs[i].edge, channels);
            inputs_[i] = {&edges_[i], inputs[i].add};
        }
    }
    Channels(const Channels&) = delete;
    Channels& operator=(const Channels&) = delete;
    ~Channels() = default;

    Inputs<T> inputs() const { return {inputs_.data(), count_}; }
    const Edge<T>& output() const { return output_; }
    Share images() const { return {0, output_.shape.batch}; }

  private:
    static Edge<T> part_of(const Edge<T>& edge, Share channels) {
        const int64_t first = channels.begin * edge.shape.batch * edge.shape.plane();
        Edge<T> part = edge;
        part.shape.channels = channels.end - channels.begin;
        if (part.value != nullptr) part.value += first;
        if (part.gradient != nullptr) part.gradient += first;
        return part;
    }

    std::array<Edge<T>, most_inputs> edges_;
    std::array<Input<T>, most_inputs> inputs_{};
    Edge<T> output_;
    std::size_t count_;
};

template <typename T>
struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
    const float* initial = nullptr;
    Buffer<T> value;
    Buffer<T> gradient;    // empty where it passes
    bool is_tied = false;  // a later layer adds its part to the gradient, and completes it
    // Null, or where a thread's part of the gradient lies until `each` has been called with it: in a step
    // that updates at once nobody reads it again, so that it need not be kept.
    Room<T>* passing = nullptr;
    // Of the optimizer, with their names: what it keeps from step to step.
    std::vector<std::pair<std::string, Buffer<T>>> states;
    int64_t size() const {
        int64_t n = 1;
        for (const int64_t extent : shape) n *= extent;
        return n;
    }

    // By a layer's prepare(): parameter_gradients() makes the gradient in parts of so many values at most,
    // each complete at once and handed to `each` before the thread begins the next.
    void may_pass(Room<T>& room, int64_t most) {
        if (is_tied) return;
        room.ask(most);
        passing = &room;
    }

    // Where a thread writes those of its values that begin with `begin`, and `each` finds them.
    T* gradient_from(int64_t begin, int thread) {
        return gradient.size() == 0 ? passing->of(thread) : gradient.data() + begin;
    }
};

template <typename T>
class Layer {
  public:
    virtual ~Layer() = default;

    // Whether the output may be the memory of an input with no other reader, and their gradients too.
    virtual bool may_write_over_input() const { return false; }
    // Whether the backward pass looks at the output, so that nobody may write over that.
    virtual bool needs_its_output() const { return false; }

    // Whether recompute() makes the output of a step that learns, so that it need not be kept.
    virtual bool may_be_recomputed() const { return false; }
    // Whether its input's gradient may be the memory of its output's, where nobody else reads the input.
    virtual bool may_write_over_gradient() const { return false; }

    // Whether each value of the output is made of the values at its place in the inputs.
    virtual bool is_elementwise() const { return false; }
    // Whether its work in a step that learns is shared by channels, of all images: `images` of forward() and
    // of the ways back are then channels. Inference is shared by images nevertheless.
    virtual bool is_by_channel() const { return false; }

    // Whether parameter_gradients() looks at the output's gradient, so that nobody may use its memory before.
    virtual bool keeps_output_gradient() const { return learns(); }

    // Once, before prepare(): the algorithm asked for convolutions, and the rooms that layers share.
    virtual void equip(Algorithm convolution, Rooms<T>& rooms) { (void)convolution, (void)rooms; }

    // What computes each direction, where there is a choice; known after prepare().
    virtual std::vector<Chosen> chosen() const { return {}; }

    // Once, before any step: room for what each thread needs of its own.
    virtual void prepare(Inputs<T> inputs, const Edge<T>& output, int threads) {
        (void)inputs, (void)output, (void)threads;
    }

    // Of a layer along time that reads lengths, before a step: how many steps of every sample it computes; 0:
    // as many as count.
    virtual void cut(int64_t steps) { (void)steps; }
    // Of a layer along time: how many steps of all samples its last forward() computed; -1 of others.
    virtual int64_t rows() const { return -1; }

    // The images [share.begin, share.end): output value from input values.
    virtual void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) = 0;

    // The same where nothing is learned; masks have no values then.
    virtual void infer(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) {
        forward(inputs, output, images, thread);
    }

    // What forward() made in this step, once more: one channel of these images.
    virtual void recompute(Inputs<T> inputs, const Edge<T>& output, int64_t channel, Share images) {
        (void)inputs, (void)output, (void)channel, (void)images;
    }

    // The same images: parameter gradients that are cheaper per image, into the thread's own store.
    virtual void backward_weights(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) {
        (void)inputs, (void)output, (void)images, (void)thread;
    }

    // The same images: input gradients from the output gradient, of the inputs that have one. Not called
    // where none has.
    virtual void backward_data(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) = 0;

    // All images, one share of each parameter: the gradient, into Parameter::gradient_from(). `each` is
    // called with the part [begin, end) that is complete, while it is still in the cache.
    using Each = std::function<void(Parameter<T>&, int64_t begin, int64_t end)>;
    virtual void parameter_gradients(Inputs<T> inputs, const Edge<T>& output, int thread, int threads,
                                     const Each& each) {
        (void)inputs, (void)output, (void)thread, (void)threads, (void)each;
    }

    // Whether what its backward_weights() made lies in Rooms::sums, so that parameter_gradients() has to
    // follow before another layer's way back; known after prepare().
    virtual bool sums_at_once() const { return false; }

    // Whether it has parameter_gradients().
    bool learns() const { return !parameters.empty() || tied != nullptr; }

    std::vector<std::unique_ptr<Parameter<T>>> parameters;
    Parameter<T>* tied = nullptr;  // an earlier layer's weight that is its own too: not among its parameters
    std::vector<std::unique_ptr<Parameter<T>>> states;  // not trained, but changed by training steps
};

// A layer with one input: the same calls with its edge.
template <typename T>
class LayerOfOne : public Layer<T> {
  public:
    virtual void prepare(const Edge<T>& input, const Edge<T>& output, int threads) {
        (void)input, (void)output, (void)threads;
    }
    virtual void forward(const Edge<T>& input, const Edge<T>& output, Share images, int thread) = 0;
    virtual void backward_weights(const Edge<T>& input, const Edge<T>& output, Share images, int thread) {
        (void)input, (void)output, (void)images, (void)thread;
    }
    // `add`: to what is there.
    virtual void backward_data(const Edge<T>& input, const Edge<T>& output, Share images, int thread,
                               bool add) = 0;
    virtual void parameter_gradients(const Edge<T>& input, const Edge<T>& output, int thread, int threads,
                                     const typename Layer<T>::Each& each) {
        (void)input, (void)output, (void)thread, (void)threads, (void)each;
    }

    void prepare(Inputs<T> inputs, const Edge<T>& output, int threads) final {
        prepare(*inputs[0].edge, output, threads);
    }
    void forward(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) final {
        forward(*inputs[0].edge, output, images, thread);
    }
    void backward_weights(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) final {
        backward_weights(*inputs[0].edge, output, images, thread);
    }
    void backward_data(Inputs<T> inputs, const Edge<T>& output, Share images, int thread) final {
        backward_data(*inputs[0].edge, output, images, thread, inputs[0].add);
    }
    void parameter_gradients(Inputs<T> inputs, const Edge<T>& output, int thread, int threads,
                             const typename Layer<T>::Each& each) final {
        parameter_gradients(*inputs[0].edge, output, thread, threads, each);
    }
};

}  // namespace timetrial::layers
