// A backend over a Product: builds the graph, runs steps, hands out tensors. See README.md of this folder.
#pragma once

#include <malloc.h>

#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "layers/along_time.h"
#include "layers/make_graph.h"
#include "layers/regions.h"
#include "layers/rules.h"
#include "layers/stopwatch.h"
#include "layers/threads.h"
#include "timetrial/backend.hpp"

namespace timetrial::layers {

template <typename T, typename Product>
class Engine : public Backend {
  public:
    explicit Engine(const tt_description& description) : description_(description) {}

    void configure(std::string_view name, std::string_view value) override {
        if (name == "parallel") {
            if (value != "images")
                throw Unsupported("parallel = '" + std::string(value) + "': the products of '" +
                                  description_.name + "' have no threads of their own; it has: images");
            return;
        }
        if (name == "convolution") {
            convolution_ = read_algorithm(name, value);
            return;
        }
        if (name == "lengths") {
            along_time_.way = read_way(name, value);
            return;
        }
        if (name == "recompute") {
            recompute_ = read_recompute(name, value);
            return;
        }
        if (name != "threads") throw unknown_setting(name, description_);
        threads_ = static_cast<int>(setting_integer(name, value, 1, 1024));
    }

    Reading read_setting(std::string_view name) override {
        if (name == "parallel") return {"images", "the only way of the engine"};
        if (name == "convolution") {
            if (!pool_) return {word_of(convolution_), "what was asked: build() decides for each layer"};
            return read_back(convolution_, chosen());
        }
        if (name == "lengths")
            return {word_of(along_time_.way), "what its layers do, which count their steps"};
        if (name == "recompute") return read_back(recompute_, pool_ != nullptr, recomputed_of(graph_));
        if (name != "threads") throw unknown_setting(name, description_);
        if (!pool_) return {std::to_string(threads_), "the number asked: the pool is made by build()"};
        return {std::to_string(pool_->size()), "size of the thread pool"};
    }

    void build(const tt_build& build) override {
        optimizer_ = read_optimizer(build.optimizer, description_.optimizers);
        pool_ = std::make_unique<ThreadPool>(threads_);
        const bool learns = (build.tasks & (TT_TRAIN | TT_GRADIENT)) != 0;
        graph_ = make_graph<T, Product>(*build.network, threads_, optimizer_, convolution_,
                                        learns && recompute_ != Recompute::kOff);
        targets_.resize(graph_.heads.size());
        losses_.resize(static_cast<std::size_t>(threads_));
        watch_.resize(static_cast<std::size_t>(threads_), graph_.nodes.size() + graph_.heads.size());
        batch_size_ = build.batch_size;
        sources_.assign(graph_.n_inputs, nullptr);
        for (std::size_t i = 0; i < graph_.n_inputs; ++i)
            if (!is_copied(i)) graph_.nodes[i].value = Buffer<T>();
        along_time_.find(graph_);
        list_regions();
        Engine::reset();
    }

    void reset() override {
        for (Parameter<T>* parameter : graph_.parameters) {
            std::copy_n(parameter->initial, parameter->size(), parameter->value.data());
            if (parameter->gradient.size() > 0) parameter->gradient.zero();
            for (auto& [name, buffer] : parameter->states) buffer.zero();
        }
        for (Parameter<T>* state : graph_.states)
            std::copy_n(state->initial, state->size(), state->value.data());
        steps_ = 0;
    }

    Facts facts() override {
        Facts all;
        visit_chosen([&all](const Node<T>& node, const Chosen& one) {
            const std::string what = node.name + " " + tt_direction_word(one.direction);
            all.emplace_back(what, word_of(one.algorithm));
            if (!one.trial.empty()) all.emplace_back(what + " trial", one.trial);
        });
        along_time_.say(all);
        if (const Recomputed some = recomputed_of(graph_); some.values > 0)
            all.emplace_back("recomputed", some.words());
        return all;
    }

    double step(uint32_t task, const tt_batch& batch) override {
        open_batch(batch, task != TT_FORWARD);
        // Clipping must know every gradient before the first weight moves.
        const bool clips = task == TT_TRAIN && optimizer_.clip_norm > 0;
        const bool descends = task == TT_TRAIN && !clips;
        if (task != TT_FORWARD) keep_gradients(!descends);
        if constexpr (is_judge<T>) take_shown(task != TT_FORWARD);
        if (descends) begin_update();
        const uint32_t behind = kLoss | kBackward | (descends ? kDescend : kGradients);
        regions_.run(*pool_, task == TT_FORWARD ? kInfer : kForward | behind);
        along_time_.count();
        if (clips) update_all();
        return task == TT_FORWARD ? std::numeric_limits<double>::quiet_NaN() : loss();
    }

    std::vector<LayerTime> profile(const tt_batch& batch) override {
        watch_.start();
        step(TT_TRAIN, batch);
        watch_.stop();
        std::vector<LayerTime> times;
        for (const tt_direction direction :
             {TT_DIRECTION_FORWARD, TT_DIRECTION_LOSS, TT_DIRECTION_BACKWARD_DATA,
              TT_DIRECTION_BACKWARD_WEIGHTS, TT_DIRECTION_UPDATE, TT_DIRECTION_REORDER}) {
            const std::size_t count = graph_.nodes.size();
            for (std::size_t i = 0; i < count + graph_.heads.size(); ++i) {
                const std::string& name = i < count ? graph_.nodes[i].name : graph_.heads[i - count].name;
                if (const uint64_t ns = watch_.slowest(i, direction))
                    times.push_back({name.c_str(), direction, ns});
            }
        }
        return times;
    }

    double part(uint32_t part, const tt_batch& batch) override {
        open_batch(batch, true);
        if (part == TT_PART_BACKWARD || part == TT_PART_UPDATE) keep_gradients(true);
        if (part == TT_PART_FORWARD) {
            regions_.run(*pool_, kForward);
            along_time_.count();
        }
        if (part == TT_PART_LOSS) regions_.run(*pool_, kLoss);
        if (part == TT_PART_BACKWARD) regions_.run(*pool_, kBackward | kGradients);
        if (part == TT_PART_UPDATE) update_all();
        return part == TT_PART_LOSS ? loss() : std::numeric_limits<double>::quiet_NaN();
    }

    void evaluate(const tt_batch& batch, float* output) override {
        step(TT_FORWARD, batch);
        const Edge<T>& prediction = graph_.nodes[graph_.output].output;
        std::copy_n(prediction.value, prediction.shape.size(), output);
    }

    std::vector<tt_tensor> tensors(uint32_t role) override {
        std::vector<tt_tensor> found;
        const uint32_t dtype = sizeof(T) == 4 ? TT_F32 : TT_F64;
        for (Parameter<T>* p : graph_.parameters) {
            if (role == TT_PARAMETER) {
                found.push_back(make_tensor(p->name.c_str(), role, dtype, p->shape, p->value.data()));
            } else if (role == TT_ROLE_GRADIENT) {
                found.push_back(make_tensor(p->name.c_str(), role, dtype, p->shape, p->gradient.data()));
            } else if (role == TT_OPTIMIZER) {
                for (auto& [name, buffer] : p->states)
                    found.push_back(make_tensor(name.c_str(), role, dtype, p->shape, buffer.data()));
            }
        }
        if (role == TT_STATE)
            for (Parameter<T>* s : graph_.states)
                found.push_back(make_tensor(s->name.c_str(), role, dtype, s->shape, s->value.data()));
        for (std::size_t i = graph_.n_inputs; role == TT_ACTIVATION && i < graph_.nodes.size(); ++i) {
            Node<T>& node = graph_.nodes[i];
            if (node.overwritten && recomputed_for(i) == nullptr) continue;
            found.push_back(make_tensor(node.name.c_str(), role, dtype, node.external_shape, made_by(node)));
        }
        return found;
    }

    // Activations leave in the layout of the outside, those that are recomputed as the last step that learns
    // had them, where it updated nothing.
    void read_tensor(tt_tensor& tensor) override {
        find_tensor(tensor);  // by name and shape
        expect_kept(tensor);
        if (tensor.role != TT_ACTIVATION) return Backend::read_tensor(tensor);
        for (std::size_t i = graph_.n_inputs; i < graph_.nodes.size(); ++i) {
            Node<T>& node = graph_.nodes[i];
            if (node.name != tensor.name) continue;
            if (const auto* which = recomputed_for(i)) recompute(*which, {0, batch_size_}, 0);
            const Shape& shape = node.output.shape;
            if (tensor.rank == 4)
                exchange(shape, made_by(node), static_cast<T*>(tensor.data));
            else
                std::copy_n(made_by(node), shape.size(), static_cast<T*>(tensor.data));
        }
    }

    // Of a judge, as in `reference`: an activation that is written is what somebody shows of the next step
    // that learns. It takes the place of what the node computes, and the layers behind read it; what the node
    // itself made of the values in front of it is read behind that step.
    void write_tensor(const tt_tensor& tensor) override {
        find_tensor(tensor);  // by name and shape
        if (tensor.role != TT_ACTIVATION) {
            expect_kept(tensor);
            return Backend::write_tensor(tensor);
        }
        if constexpr (is_judge<T>) {
            for (Node<T>& node : graph_.nodes) {
                if (node.name != tensor.name) continue;
                const auto* values = static_cast<const T*>(tensor.data);
                Shape outside = node.output.shape;
                if (node.shown.size() == 0) node.shown = Buffer<T>(outside.size());
                node.is_shown = true;
                if (tensor.rank != 4) {
                    std::copy_n(values, outside.size(), node.shown.data());
                    continue;
                }
                std::swap(outside.batch, outside.channels);  // of its layout, as they change places
                exchange(outside, values, node.shown.data());
            }
        } else {
            throw Unsupported("activations cannot be written: a step computes them");
        }
    }

  private:
    std::vector<Chosen> chosen() const {
        std::vector<Chosen> all;
        visit_chosen([&all](const Node<T>&, const Chosen& one) { all.push_back(one); });
        return all;
    }

    // visit(node, choice) for every algorithm that a layer has chosen, in the order of the network.
    template <typename Visit>
    void visit_chosen(Visit visit) const {
        for (const Node<T>& node : graph_.nodes) {
            if (!node.layer) continue;
            for (const Chosen& one : node.layer->chosen()) visit(node, one);
        }
    }

    // Checks what would corrupt memory, and keeps the pointers for the regions.
    void open_batch(const tt_batch& batch, bool needs_target) {
        for (std::size_t i = 0; i < graph_.n_inputs; ++i) {
            Node<T>& input = graph_.nodes[i];
            sources_[i] = batch_tensor(batch, input.name).data;
            if constexpr (std::is_same_v<T, float>) {
                if (!is_copied(i)) input.output.value = static_cast<float*>(sources_[i]);  // only read
            }
        }
        for (std::size_t i = 0; needs_target && i < targets_.size(); ++i)
            targets_[i] = graph_.heads[i].target.of(batch);
        along_time_.open(sources_, batch_size_);
    }

    // Into the engine's layout; where that is the batch's own, an input is read in place.
    bool is_copied(std::size_t input) const {
        const Shape& shape = graph_.nodes[input].output.shape;
        return !std::is_same_v<T, float> || graph_.nodes[input].is_whole ||
               (!shape.flat && shape.channels > 1);
    }

    // A training step. By images as far as the gradients of the activations, then by parameters.
    void list_regions() {
        regions_ = {};
        const std::size_t count = graph_.nodes.size();
        add_loads(kForward);
        for (std::size_t i = graph_.n_inputs; i < count; ++i)
            add_work(
                kForward, i, TT_DIRECTION_FORWARD,
                [&node = graph_.nodes[i]](Inputs<T> inputs, const Edge<T>& output, Share share, int thread) {
                    node.layer->forward(inputs, output, share, thread);
                    if constexpr (is_judge<T>) replace(node, output, share);
                });
        for (std::size_t i = 0; i < graph_.heads.size(); ++i)
            add(kLoss, count + i, TT_DIRECTION_LOSS,
                [this, i](Share images, int thread) { lose(i, images, thread); });
        for (std::size_t i = count; i-- > graph_.n_inputs;) {
            add_backward(i, graph_.nodes[i]);
            if (graph_.nodes[i].layer->sums_at_once()) add_gradients(i);
        }
        for (std::size_t i = graph_.n_inputs; i < count; ++i)
            if (!graph_.nodes[i].layer->sums_at_once()) add_gradients(i);
        for (std::size_t i = graph_.n_inputs; i < count; ++i) {
            for (const auto& owned : graph_.nodes[i].layer->parameters) {
                regions_.add(kUpdate, Shared::kElements, [this, i, parameter = owned.get()](int thread) {
                    const Share mine = share_of(parameter->size(), thread, threads_);
                    watch_.time(thread, i, TT_DIRECTION_UPDATE,
                                [&] { update(*parameter, mine.begin, mine.end, thread); });
                });
            }
        }
        add_inference();
    }

    // By parameters: their gradients, and the update of each piece.
    void add_gradients(std::size_t i) {
        Node<T>& node = graph_.nodes[i];
        if (!node.layer->learns()) return;
        for (const Phase phase : {kGradients, kDescend}) {
            regions_.add(phase, Shared::kParameters, [this, i, &node, phase](int thread) {
                gradients(i, node, thread, phase == kDescend);
            });
        }
    }

    // Of a node that is recomputed, where it is the last of those that its reader's way back begins with: all
    // of them. They are there once more, with the bits that they had, until the parameters change.
    const std::vector<std::size_t>* recomputed_for(std::size_t i) const {
        for (const Node<T>& reader : graph_.nodes)
            if (!reader.recomputes.empty() && reader.recomputes.back() == i) return &reader.recomputes;
        return nullptr;
    }

    // What a node's layer made of its inputs, whether or not its readers saw it.
    static T* made_by(Node<T>& node) { return node.was_shown ? node.shown.data() : node.output.value; }

    // What is shown is for one step that learns.
    void take_shown(bool learns) {
        for (Node<T>& node : graph_.nodes) {
            node.was_shown = learns && node.is_shown;
            if (learns) node.is_shown = false;
        }
    }

    // Where something is shown, what the layer has just computed changes places with it: a share, of channels
    // where the layer is `by_channel` itself.
    static void replace(Node<T>& node, const Edge<T>& output, Share share) {
        if (!node.was_shown) return;
        T* const shown = node.shown.data() + (output.value - node.output.value);
        const auto put = [&](int64_t first, int64_t count) {
            std::swap_ranges(output.value + first, output.value + first + count, shown + first);
        };
        const Shape& shape = output.shape;
        if (!node.layer->is_by_channel()) return for_each_run(shape, share, put);
        const int64_t rows = shape.flat ? shape.batch : 1;  // flat values of a channel are apart
        const int64_t width = shape.flat ? 1 : shape.batch * shape.plane();
        for (int64_t row = 0; row < rows; ++row)
            put(row * shape.channels + share.begin * width, (share.end - share.begin) * width);
    }

    // By images, whatever a layer needs where it learns.
    void add_inference() {
        add_loads(kInfer);
        for (std::size_t i = graph_.n_inputs; i < graph_.nodes.size(); ++i) {
            const Node<T>& node = graph_.nodes[i];
            // Of two shapes a thread has different parts of one buffer.
            if (node.recomputed && !node.in_place) regions_.meet();
            add(kInfer, i, TT_DIRECTION_FORWARD, [&node](Share images, int thread) {
                node.layer->infer(node.reads, node.output, images, thread);
            });
        }
    }

    void add_loads(Phase phase) {
        for (std::size_t i = 0; i < graph_.n_inputs; ++i)
            if (is_copied(i) && !(graph_.nodes[i].is_mask && phase == kInfer))
                add(phase, i, TT_DIRECTION_REORDER, [this, i](Share images, int) { load(i, images); });
    }

    void lose(std::size_t i, Share images, int thread) {
        const Head<T>& head = graph_.heads[i];
        double& loss = losses_[static_cast<std::size_t>(thread)];
        if (i == 0) loss = 0;
        loss += head.loss->evaluate(head.prediction, targets_[i], images, head.weight);
        T* const whole = graph_.nodes[head.of].output.gradient;
        if (whole == nullptr || whole == head.prediction.gradient) return;
        for_each_run(head.prediction.shape, images, [&](int64_t first, int64_t count) {
            pass_on(head.prediction.gradient + first, whole + first, count, head.add);
        });
    }

    void add_backward(std::size_t i, Node<T>& node) {
        if (!node.output.gradient) return;
        if (!node.recomputes.empty())
            add(kBackward, node.recomputes.front(), TT_DIRECTION_FORWARD,
                [this, &node](Share images, int thread) { recompute(node.recomputes, images, thread); });
        if (node.layer->learns()) {
            add_work(
                kBackward, i, TT_DIRECTION_BACKWARD_WEIGHTS,
                [layer = node.layer.get()](Inputs<T> inputs, const Edge<T>& output, Share share, int thread) {
                    layer->backward_weights(inputs, output, share, thread);
                });
        }
        const auto learns = [](const Input<T>& input) { return input.edge->gradient != nullptr; };
        if (std::none_of(node.reads.begin(), node.reads.end(), learns)) return;
        add_work(kBackward, i, TT_DIRECTION_BACKWARD_DATA,
                 [&node](Inputs<T> inputs, const Edge<T>& output, Share share, int thread) {
                     node.layer->backward_data(inputs, output, share, thread);
                 });
    }

    // The nodes' values once more: channel by channel, so that each finds in the cache what the
    // one before it wrote.
    void recompute(const std::vector<std::size_t>& which, Share images, int thread) {
        const Node<T>& first = graph_.nodes[which.front()];
        for (int64_t c = 0; c < first.output.shape.channels; ++c) {
            first.layer->recompute(first.reads, first.output, c, images);
            for (const std::size_t i : std::span(which).subspan(1)) {
                const Node<T>& node = graph_.nodes[i];
                const Channels<T> some(node.reads, node.output, {c, c + 1});
                node.layer->forward(some.inputs(), some.output(), images, thread);
            }
        }
    }

    // What a layer does in a step that learns, on each thread's images or channels.
    template <typename Work>
    void add_work(uint32_t phases, std::size_t i, tt_direction direction, Work work) {
        const Node<T>& node = graph_.nodes[i];
        if (!node.by_channel) {
            return add(phases, i, direction, [&node, work](Share images, int thread) {
                work(node.reads, node.output, images, thread);
            });
        }
        const Shape& shape = node.output.shape;
        const int64_t step = shape.flat ? shape.channels : 1;  // flat values of a channel are apart
        regions_.add_by_channel(phases, shape.channels, step,
                                [this, &node, i, direction, work](int thread, Share channels) {
                                    watch_.time(thread, i, direction, [&] {
                                        if (node.layer->is_by_channel())
                                            return work(node.reads, node.output, channels, thread);
                                        const Channels<T> some(node.reads, node.output, channels);
                                        work(some.inputs(), some.output(), some.images(), thread);
                                    });
                                });
    }

    // One operation on each thread's images, with a clock for the profile.
    template <typename Work>
    void add(uint32_t phases, std::size_t node, tt_direction direction, Work work) {
        regions_.add(phases, Shared::kImages, [this, node, direction, work](int thread) {
            const Share images = share_of(batch_size_, thread, threads_);
            watch_.time(thread, node, direction, [&] { work(images, thread); });
        });
    }

    void gradients(std::size_t i, Node<T>& node, int thread, bool and_update) {
        const typename Layer<T>::Each each = [&](Parameter<T>& parameter, int64_t begin, int64_t end) {
            if (!and_update) return;
            watch_.time(thread, i, TT_DIRECTION_UPDATE, [&] { update(parameter, begin, end, thread); });
        };
        const auto compute = [&] {
            node.layer->parameter_gradients(node.reads, node.output, thread, threads_, each);
        };
        watch_.time(thread, i, TT_DIRECTION_BACKWARD_WEIGHTS, compute, TT_DIRECTION_UPDATE);
    }

    // Whether those of the step that follows are to be read behind it. Memory of their own is made when one
    // is, for the first time: a process that only trains never has it. It goes back to the system, or the
    // process would be as large as before.
    void keep_gradients(bool keep) {
        if (keeps_ == keep) return;
        for (Parameter<T>* parameter : graph_.parameters)
            if (parameter->passing) parameter->gradient = keep ? Buffer<T>(parameter->size()) : Buffer<T>();
        if (!keep) malloc_trim(0);
        keeps_ = keep;
    }

    void expect_kept(const tt_tensor& tensor) const {
        if (tensor.role == TT_ROLE_GRADIENT && !keeps_) throw gradients_not_kept(tensor.name);
    }

    void begin_update(double norm = 0) {
        numbers_ = UpdateNumbers<T>(optimizer_, optimizer_.at(steps_++, norm));
    }

    void update_all() {
        begin_update(optimizer_.clip_norm > 0 ? gradient_norm() : 0);
        regions_.run(*pool_, kUpdate);
    }

    // Of all parameters together.
    double gradient_norm() const {
        double squares = 0;
        for (const Parameter<T>* parameter : graph_.parameters)
            squares += square_sum(parameter->gradient.data(), parameter->size());
        return std::sqrt(squares);
    }

    // One pass over gradient, states and weights.
    void update(Parameter<T>& parameter, int64_t begin, int64_t end, int thread) const {
        const auto state = [&](std::size_t which) {
            return which < parameter.states.size() ? parameter.states[which].second.data() + begin : nullptr;
        };
        layers::update<T>({parameter.value.data() + begin, parameter.gradient_from(begin, thread), state(0),
                           state(1), end - begin},
                          numbers_);
    }

    // The share's samples of an input into C x N x H x W.
    void load(std::size_t number, Share images) {
        if (graph_.nodes[number].is_whole)
            return load(number, images, static_cast<const int64_t*>(sources_[number]));
        load(number, images, static_cast<const float*>(sources_[number]));
    }
    template <typename From>
    void load(std::size_t number, Share images, const From* source) {
        const Edge<T>& input = graph_.nodes[number].output;
        const int64_t plane = input.shape.plane(), channels = input.shape.flat ? 1 : input.shape.channels;
        const int64_t width = input.shape.flat ? input.shape.features() : plane;
        for (int64_t n = images.begin; n < images.end; ++n) {
            for (int64_t c = 0; c < channels; ++c) {
                std::copy_n(source + (n * channels + c) * width, width,
                            input.value + (c * input.shape.batch + n) * width);
            }
        }
    }

    static void exchange(const Shape& shape, const T* from, T* to) {
        for (int64_t n = 0; n < shape.batch; ++n) {
            for (int64_t c = 0; c < shape.channels; ++c) {
                std::copy_n(from + (c * shape.batch + n) * shape.plane(), shape.plane(),
                            to + (n * shape.channels + c) * shape.plane());
            }
        }
    }

    double loss() const {
        double sum = 0;
        for (const double part : losses_) sum += part;  // in the order of the threads
        return sum;
    }

    const tt_description& description_;
    int threads_ = 1;
    Algorithm convolution_ = Algorithm::kByShape;
    Recompute recompute_ = Recompute::kByDefault;
    int64_t batch_size_ = 0;
    Optimizer optimizer_;
    UpdateNumbers<T> numbers_{};  // of the update under way
    uint64_t steps_ = 0;          // since reset()
    bool keeps_ = false;          // the gradients of the last step that had some
    std::unique_ptr<ThreadPool> pool_;
    Graph<T> graph_;
    AlongTime<T> along_time_;
    Regions regions_;
    std::vector<double> losses_;
    Stopwatch watch_;              // losses stand behind the nodes
    std::vector<void*> sources_;   // of each input, in the batch: f32 or i64
    std::vector<Target> targets_;  // of each head, in the batch
};

}  // namespace timetrial::layers
