// oneDNN: primitives and memory made once, formats that the library likes from layer to layer. See README.md.
#include <malloc.h>
#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onednn/conditions.h"
#include "onednn/graph.h"
#include "onednn/settings.h"
#include "timetrial/backend.hpp"
#include "timetrial/kept_folder.h"
#include "timetrial/lengths.hpp"
#include "timetrial/sequence_steps.h"

namespace timetrial::onednn {
namespace {

constexpr const char* devices[] = {"cpu", nullptr};
constexpr const char* dtypes[] = {"f32", nullptr};
constexpr auto optimizers = optimizer_words();
constexpr const char* settings[] = {"threads",   "parallel", "convolution",        "lengths",
                                    "recompute", "cache",    "onednn.max_cpu_isa", "onednn.math_mode",
                                    nullptr};

std::string library_version() {
    const dnnl_version_t& version = *dnnl_version();
    return std::to_string(version.major) + "." + std::to_string(version.minor) + "." +
           std::to_string(version.patch);
}

// Not a constant: the library that is loaded says which it is.
const tt_description& description() {
    static const std::string library = "oneDNN " + library_version();
    static const tt_description described{
        .size = sizeof(tt_description),
        .name = "onednn",
        .version = "0.1.0",
        .library = library.c_str(),
        .isa = "",
        .tasks = TT_TRAIN | TT_GRADIENT | TT_FORWARD,
        .parts = TT_PART_FORWARD | TT_PART_LOSS | TT_PART_BACKWARD | TT_PART_UPDATE,
        .flags = TT_PROFILES,
        .devices = devices,
        .dtypes = dtypes,
        .layers = kinds.data(),
        .optimizers = optimizers.data(),
        .settings = settings,
    };
    return described;
}

class OneDnn final : public Backend {
  public:
    void configure(std::string_view name, std::string_view value) override {
        if (name == "threads") {
            threads_ = static_cast<int>(setting_integer(name, value, 1, 1024));
            omp_set_num_threads(threads_);
        } else if (name == "parallel") {
            if (value != "product")
                throw Unsupported(
                    "parallel = '" + std::string(value) +
                    "': onednn splits each of its operations over the threads; expected product");
        } else if (name == "convolution") {
            convolution_ = read_algorithm(value);
        } else if (name == "lengths") {
            way_ = read_way(name, value, {Way::kPadded, Way::kRounded});
        } else if (name == "recompute") {
            recompute_ = layers::read_recompute(name, value);
        } else if (name == "cache") {
            if (value != "warm" && value != "cold")
                throw Unsupported("cache = '" + std::string(value) + "': expected warm or cold");
            may_keep_ = value == "warm";
        } else if (name == "onednn.max_cpu_isa") {
            limit_isa(value);
        } else if (name == "onednn.math_mode") {
            set_math_mode(value);
            math_mode_ = value;
        } else {
            throw unknown_setting(name, description());
        }
    }

    Reading read_setting(std::string_view name) override {
        if (name == "threads") return {std::to_string(omp_get_max_threads()), "omp_get_max_threads()"};
        if (name == "parallel") return {"product", "onednn: has no other"};
        if (name == "convolution") return read_convolution();
        if (name == "lengths") return {word_of(way_), "onednn: the primitives that it makes"};
        if (name == "recompute")
            return layers::read_back(recompute_, !graph_.nodes.empty(), graph_.recomputed);
        if (name == "cache")
            return {is_kept_ ? "warm" : "cold",
                    "onednn: " + (trials_report_.empty() ? "nothing was tried yet" : trials_report_)};
        if (name == "onednn.max_cpu_isa") return {effective_isa(), "dnnl_get_effective_cpu_isa()"};
        if (name == "onednn.math_mode") return {math_mode(), "dnnl_get_default_fpmath_mode()"};
        throw unknown_setting(name, description());
    }

    void build(const tt_build& build) override {
        use_threads();
        set_math_mode(math_mode_);
        engine_ = dnnl::engine(dnnl::engine::kind::cpu, 0);
        stream_ = dnnl::stream(engine_);
        batch_size_ = build.batch_size;
        optimizer_ = read_optimizer(build.optimizer, description().optimizers);
        learns_ = (build.tasks & (TT_TRAIN | TT_GRADIENT)) != 0;
        losses_.resize(static_cast<std::size_t>(omp_get_max_threads()));
        allocating([&] { choose_layout(build); });
        targets_.resize(graph_.heads.size());
        graph_.tally.clear();  // what the trials computed
        reset();
        malloc_trim(0);  // what the trials used
    }

    void reset() override {
        for (Parameter* parameter : graph_.parameters) {
            import(parameter->initial, parameter->outside, parameter->value.made());
            if (!learns_) continue;
            if (keeps_ || !parameter->passing) clear(parameter->gradient);
            for (const auto& [name, state] : parameter->states) clear(state);
        }
        for (Parameter* state : graph_.states) import(state->initial, state->outside, state->value.made());
        steps_ = 0;
    }

    double step(uint32_t task, const tt_batch& batch) override {
        open_batch(batch, task != TT_FORWARD);
        run_forward(task == TT_FORWARD ? Runs::kInference : Runs::kTraining);
        if (task == TT_FORWARD) return std::numeric_limits<double>::quiet_NaN();
        const double loss = lose();
        // Clipping must know every gradient before the first weight moves.
        const bool updates_at_once = task == TT_TRAIN && optimizer_.clip_norm == 0;
        keep_gradients(!updates_at_once);
        if (updates_at_once) begin_update();
        for (const Operation& operation : graph_.backward)
            if (updates_at_once || operation.direction != TT_DIRECTION_UPDATE) operation.run();
        if (task == TT_TRAIN && !updates_at_once) update();
        return loss;
    }

    double part(uint32_t part, const tt_batch& batch) override {
        open_batch(batch, part == TT_PART_LOSS);
        if (part == TT_PART_BACKWARD || part == TT_PART_UPDATE) keep_gradients(true);
        if (part == TT_PART_LOSS) return lose();
        if (part == TT_PART_FORWARD) run_forward(Runs::kTraining);
        if (part == TT_PART_UPDATE) update();
        for (const Operation& operation : graph_.backward)
            if (part == TT_PART_BACKWARD && operation.direction != TT_DIRECTION_UPDATE) operation.run();
        return std::numeric_limits<double>::quiet_NaN();
    }

    void evaluate(const tt_batch& batch, float* output) override {
        step(TT_FORWARD, batch);
        const Tensor& prediction = graph_.heads.front().prediction;
        std::copy_n(prediction.data(), prediction.stored_elements(), output);
    }

    std::vector<tt_tensor> tensors(uint32_t role) override {
        std::vector<tt_tensor> found;
        for (const Parameter* p : graph_.parameters) {
            if (role == TT_PARAMETER || role == TT_ROLE_GRADIENT)
                found.push_back(make_tensor(p->name.c_str(), role, TT_F32, p->shape));
            for (const auto& [name, state] : p->states)
                if (role == TT_OPTIMIZER) found.push_back(make_tensor(name.c_str(), role, TT_F32, p->shape));
        }
        for (const Parameter* s : graph_.states)
            if (role == TT_STATE) found.push_back(make_tensor(s->name.c_str(), role, TT_F32, s->shape));
        // What an activation in the same primitive has overwritten is nowhere to be read; what is recomputed
        // is.
        for (const Node& node : graph_.nodes)
            if (role == TT_ACTIVATION && node.layer && (!node.is_overwritten || node.again.end > 0))
                found.push_back(make_tensor(node.name.c_str(), role, TT_F32, node.shape));
        return found;
    }

    // Tensors leave and enter in the layout of the outside.
    void read_tensor(tt_tensor& tensor) override {
        find_tensor(tensor);
        expect_kept(tensor);
        const auto [inside, outside] = locate(tensor);
        Tensor user{outside, dnnl::memory(outside, engine_, tensor.data)};
        move(inside, user);
    }

    void write_tensor(const tt_tensor& tensor) override {
        find_tensor(tensor);
        if (tensor.role == TT_ACTIVATION)
            throw Unsupported("activations cannot be written: a step computes them");
        expect_kept(tensor);
        const auto [inside, outside] = locate(tensor);
        import(static_cast<const float*>(tensor.data), outside, inside);
    }

    Facts facts() override {
        const dnnl_version_t& version = *dnnl_version();
        Facts all{{"onednn.version", library_version() + " (" + version.hash + ")"},
                  {"onednn.isa", effective_isa()},
                  {"onednn.threading", version.cpu_runtime == DNNL_RUNTIME_OMP ? "OpenMP" : "not OpenMP"},
                  {"layout", layout_report_},
                  {"trials", trials_report_}};
        all.insert(all.end(), graph_.facts.begin(), graph_.facts.end());
        if (graph_.recomputed.values > 0) all.emplace_back("recomputed", graph_.recomputed.words());
        if (const int64_t steps = graph_.tally.most(); steps > 0)
            all.emplace_back(TT_SEQUENCE_STEPS_FACT, std::to_string(steps));
        return all;
    }

    std::vector<LayerTime> profile(const tt_batch& batch) override {
        open_batch(batch, true);
        keep_gradients(optimizer_.clip_norm > 0);
        LayerTimer timer;
        const auto time = [&](const std::vector<Operation>& program) {
            for (const Operation& operation : program)
                if (operation.runs_in(Runs::kTraining))
                    timer.time(graph_.name_of(operation).c_str(), operation.direction, operation.run);
        };
        time(graph_.forward);
        for (std::size_t i = 0; i < graph_.heads.size(); ++i)
            timer.time(graph_.heads[i].name.c_str(), TT_DIRECTION_LOSS, [&] { lose(i); });
        if (optimizer_.clip_norm > 0) {
            const auto is_update = [](const Operation& one) { return one.direction == TT_DIRECTION_UPDATE; };
            std::vector<Operation> gradients;
            std::ranges::remove_copy_if(graph_.backward, std::back_inserter(gradients), is_update);
            time(gradients);
            timer.time("*", TT_DIRECTION_UPDATE, [&] { update(); });
            return timer.times;
        }
        begin_update();
        time(graph_.backward);
        return timer.times;
    }

  private:
    // By the names of the implementations, which are facts.
    Reading read_convolution() const {
        if (graph_.nodes.empty())
            return {word_of(convolution_), "what was asked: build() decides for each layer"};
        std::ptrdiff_t winograd = 0, all = 0;
        for (const Node& node : graph_.nodes) {
            if (!is_convolution(node)) continue;
            for (const tt_direction direction :
                 {TT_DIRECTION_FORWARD, TT_DIRECTION_BACKWARD_DATA, TT_DIRECTION_BACKWARD_WEIGHTS}) {
                const auto fact = std::ranges::find(graph_.facts, node.purpose(direction).text(),
                                                    &std::pair<std::string, std::string>::first);
                if (fact == graph_.facts.end()) continue;
                ++all;
                winograd += is_winograd(fact->second) ? 1 : 0;
            }
        }
        if (all == 0) throw Unsupported("no layer of the network is a convolution");
        const bool lacks = convolution_ == Algorithm::kWinograd && winograd == 0;
        return {word_of(lacks ? Algorithm::kDirect : convolution_),
                "implementations of convolutions: winograd " + std::to_string(winograd) + ", others " +
                    std::to_string(all - winograd) + " (the facts say which)"};
    }

    static bool is_convolution(const Node& node) {
        return dynamic_cast<const Convolution*>(node.layer.get()) != nullptr;
    }

    void run_forward(Runs step) const {
        for (const Operation& operation : graph_.forward)
            if (operation.runs_in(step)) operation.run();
    }

    static void clear(const Tensor& tensor) { std::fill_n(tensor.data(), tensor.stored_elements(), 0.0F); }

    // The library's word for too little memory in that of the border.
    template <typename F>
    static void allocating(const F& make) {
        try {
            make();
        } catch (const dnnl::error& error) {
            if (error.status == dnnl_out_of_memory) throw std::bad_alloc();
            throw;
        }
    }

    // Whether those of the step that follows are to be read behind it. Memory of their own is made when one
    // is, for the first time: a process that only trains never has it. It goes back to the system, or the
    // process would be as large as before.
    void keep_gradients(bool keep) {
        if (keeps_ == keep) return;
        for (Parameter* p : graph_.parameters) {
            if (!p->passing) continue;
            if (keep) {
                allocating([&] { p->own = allocate(engine_, p->gradient.desc); });
                p->keep_at(p->own.data());
            } else {
                p->pass_at(p->passing);
                p->own = {};
            }
        }
        if (!keep) malloc_trim(0);
        keeps_ = keep;
    }

    void expect_kept(const tt_tensor& tensor) const {
        if (tensor.role == TT_ROLE_GRADIENT && !keeps_) throw gradients_not_kept(tensor.name);
    }

    void begin_update(double norm = 0) {
        *graph_.numbers = layers::UpdateNumbers<float>(optimizer_, optimizer_.at(steps_++, norm));
    }

    // All parameters, when all gradients are there.
    void update() {
        double squares = 0;
        for (const Parameter* p : graph_.parameters)
            if (optimizer_.clip_norm > 0)
                squares += layers::square_sum(p->gradient.data(), p->gradient.stored_elements());
        begin_update(std::sqrt(squares));
        for (const Operation& operation : graph_.backward)
            if (operation.direction == TT_DIRECTION_UPDATE) operation.run();
    }

    // OpenMP keeps the number per thread, and the caller may be another one than built.
    void use_threads() const {
        if (threads_ > 0) omp_set_num_threads(threads_);
    }

    // Where an earlier launch has kept what its trials found, that is built, and nothing is timed: so all
    // launches of a run use the same kernels, however busy the machine is as they start.
    void choose_layout(const tt_build& build) {
        const char* const folder = may_keep_ ? std::getenv(TT_KEPT_FOLDER) : nullptr;
        KeptFile file(folder ? folder : "", folder ? conditions_of(build) : "");
        if (const std::optional<Kept> kept = file.read()) {
            is_kept_ = build_kept(build, *kept, file.date());
            if (is_kept_) return;
            file.reject();
        }
        const Candidate chosen = try_layouts(build);
        trials_report_ = "tried: " + std::to_string(trials_) + " trials in this launch";
        if (!folder) return;
        const std::string problem =
            file.write({word_of(chosen.layout), layout_report_, chosen.decisions.choices()});
        trials_report_ += problem.empty() ? ", kept for those that follow" : ", not kept: " + problem;
    }

    struct Candidate {
        Layout layout;
        Decisions decisions{};
        double ns = std::numeric_limits<double>::infinity();
    };

    void make(const tt_build& build, Candidate& one) {
        graph_ = {};  // one at a time: a graph holds all activations
        graph_ = make_graph(engine_, stream_, one.layout, convolution_, way_, recompute_, build, optimizer_,
                            one.decisions);
    }

    // False: something had to be tried all the same, so that the choices are not those of one launch.
    bool build_kept(const tt_build& build, const Kept& kept, const std::string& date) {
        Candidate one{read_layout(kept.layout), Decisions(&kept.choices)};
        make(build, one);
        if (one.decisions.trials() > 0) return false;
        layout_report_ = kept.report;
        trials_report_ = "kept: " + std::to_string(kept.choices.size()) + " choices of an earlier launch (" +
                         date + "), nothing was tried in this one";
        return true;
    }

    // Networks with convolutions are built in both layouts and the faster one stays. A machine that others
    // use may be slower for seconds: each is timed twice, the other in between, and its shorter time counts.
    Candidate try_layouts(const tt_build& build) {
        Candidate last{Layout::kChannelsLast}, blocked{Layout::kBlocked};
        make(build, last);
        trials_ = last.decisions.trials();
        if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), is_convolution)) {
            layout_report_ = "flat";
            return last;
        }
        last.ns = time_step();
        for (Candidate* const one : {&blocked, &last, &blocked}) {
            make(build, *one);
            one->ns = std::min(one->ns, time_step());
        }
        const bool is_blocked = blocked.ns < (1 - least_gain) * last.ns;
        if (!is_blocked) make(build, last);
        layout_report_ = "channels last " + layers::milliseconds(last.ns) + (is_blocked ? "" : " (chosen)") +
                         "; blocked " + layers::milliseconds(blocked.ns) + (is_blocked ? " (chosen)" : "");
        trials_ += blocked.decisions.trials() + 1;
        return is_blocked ? blocked : last;
    }

    std::string conditions_of(const tt_build& build) const {
        return machine_words(&devices, library_version() + " " + dnnl_version()->hash) + "convolution " +
               word_of(convolution_) + "\nlengths " + word_of(way_) + "\nrecompute " +
               layers::word_of(recompute_) + "\nlearns " + (learns_ ? "yes" : "no") + "\nbatch " +
               std::to_string(build.batch_size) + "\n" + words_of(*build.network);
    }

    static constexpr double least_gain = 0.03;

    // Of a step without update on images that mean nothing.
    double time_step() {
        reset();
        std::vector<Tensor> inputs;
        graph_.read_inputs_at([&](const Node& input) {
            const Tensor& samples = inputs.emplace_back(allocate(engine_, input.value.desc()));
            for (int64_t i = 0; i < samples.stored_elements(); ++i)
                samples.data()[i] = static_cast<float>(i % 17) / 17;
            return samples.data();
        });
        int64_t most = 0, rows = 0;
        for (const Head& head : graph_.heads) {
            most = std::max(most, head.prediction.stored_elements());
            rows = std::max(rows, head.target.n);
        }
        const std::vector<int64_t> labels(static_cast<std::size_t>(rows));
        const std::vector<float> values(static_cast<std::size_t>(most));
        targets_.clear();
        for (const Head& head : graph_.heads)
            targets_.push_back({labels.data(), values.data(), head.target.n});
        const auto run = [&] {
            run_forward(learns_ ? Runs::kTraining : Runs::kInference);
            if (learns_) lose();
            for (const Operation& operation : graph_.backward)
                if (operation.direction != TT_DIRECTION_UPDATE) operation.run();
        };
        return layers::trial::time(run, omp_get_max_threads() == 1, 0);
    }

    void open_batch(const tt_batch& batch, bool needs_target) {
        use_threads();
        graph_.read_inputs_at([&](const Node& input) { return batch_tensor(batch, input.name).data; });
        for (std::size_t i = 0; needs_target && i < targets_.size(); ++i)
            targets_[i] = graph_.heads[i].target.of(batch);
    }

    double lose() {
        double sum = 0;
        for (std::size_t i = 0; i < graph_.heads.size(); ++i) sum += lose(i);
        return sum;
    }

    double lose(std::size_t number) {
        const Head& head = graph_.heads[number];
        const int64_t elements = head.prediction.stored_elements();
        const layers::Shape shape{batch_size_, elements / batch_size_,     1, 1,
                                  true,        head.target.n / batch_size_};
        const layers::Edge<float> prediction{shape, head.prediction.data(), head.gradient.data()};
        std::fill(losses_.begin(), losses_.end(), 0.0);
#pragma omp parallel if (elements > worth_sharing)
        {
            const int thread = omp_get_thread_num();
            losses_[static_cast<std::size_t>(thread)] = head.loss->evaluate(
                prediction, targets_[number], layers::share_of(batch_size_, thread, omp_get_num_threads()),
                head.weight);
        }
        return std::accumulate(losses_.begin(), losses_.end(), 0.0);  // in the order of the threads
    }

    static constexpr int64_t worth_sharing = 1 << 13;

    void move(const Tensor& from, const Tensor& to) {
        reorder_call(engine_, stream_, from, to)();
        stream_.wait();
    }

    void import(const float* values, const Desc& outside, const Tensor& inside) {
        move({outside, dnnl::memory(outside, engine_, const_cast<float*>(values))}, inside);
    }

    // Where a tensor lies, and the plain form of its extents there. A value that is recomputed lies there
    // now.
    std::pair<Tensor, Desc> locate(const tt_tensor& tensor) const {
        for (const Parameter* p : graph_.parameters) {
            if (tensor.role == TT_PARAMETER && p->name == tensor.name) return {p->value.made(), p->outside};
            if (!learns_) continue;
            if (tensor.role == TT_ROLE_GRADIENT && p->name == tensor.name) return {p->gradient, p->outside};
            for (const auto& [name, state] : p->states)
                if (tensor.role == TT_OPTIMIZER && name == tensor.name) return {state, p->outside};
        }
        for (const Parameter* s : graph_.states)
            if (tensor.role == TT_STATE && s->name == tensor.name) return {s->value.made(), s->outside};
        for (const Node& node : graph_.nodes) {
            if (tensor.role != TT_ACTIVATION || node.name != tensor.name) continue;
            for (std::size_t i = node.again.first; i < node.again.end; ++i) graph_.backward[i].run();
            const Tensor& value = node.again.end > 0 ? node.again.value : node.value.made();
            return {value, plain(dims_of(value.desc))};
        }
        throw std::invalid_argument("tensor '" + std::string(tensor.name) + "' is not kept for this task");
    }

    int threads_ = 0;  // 0: OpenMP's own number
    std::string math_mode_ = "strict";
    Algorithm convolution_ = Algorithm::kDirect;
    Way way_ = Way::kRounded;
    layers::Recompute recompute_ = layers::Recompute::kByDefault;
    bool learns_ = false;
    int64_t batch_size_ = 0;
    dnnl::engine engine_;
    dnnl::stream stream_;
    Optimizer optimizer_;
    uint64_t steps_ = 0;  // since reset()
    bool keeps_ = false;  // the gradients of the last step that had some
    Graph graph_;
    std::string layout_report_, trials_report_;
    int trials_ = 0;
    bool may_keep_ = true, is_kept_ = false;
    std::vector<double> losses_;
    std::vector<Target> targets_;  // of each loss, in the batch
};

}  // namespace
}  // namespace timetrial::onednn

extern "C" TT_EXPORT const tt_backend* tt_backend_table(uint32_t host_abi) {
    return timetrial::backend_table<timetrial::onednn::OneDnn>(host_abi, timetrial::onednn::description());
}
