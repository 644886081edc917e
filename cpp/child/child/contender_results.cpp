// The commands that give numbers away: predictions, test scores, tensors.
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "contender.h"
#include "metrics/score.h"
#include "words.h"

namespace timetrial {
namespace {

// What the loss of the prediction holds it against.
const std::int64_t* labels_of(const Network& network, const Batch& batch) {
    const tt_tensor& target = batch.tensors()[network.node(network.output_loss()).inputs[1]];
    if (target.dtype != TT_I64)
        throw BackendError(TT_UNSUPPORTED, "the network predicts no classes, so it has no accuracy");
    return static_cast<const std::int64_t*>(target.data);
}

void make_folder(const std::string& folder) {
    if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
        throw std::system_error(errno, std::generic_category(), "cannot make the folder '" + folder + "'");
}

std::string file_of(const std::string& folder, const TensorInfo& tensor) {
    if (tensor.name.find('/') != std::string::npos)
        throw BackendError(TT_FAILED, "tensor '" + tensor.name + "' cannot be a file: its name has a '/'");
    return folder + "/" + tensor.name + ".npy";
}

std::vector<char> read(PluginContext& context, const TensorInfo& tensor) {
    std::vector<char> values(tensor.bytes());
    context.read_tensor(tensor, values.data());
    return values;
}

// Only the rows at these places of the first axis.
void take_rows(TensorInfo& tensor, std::vector<char>& values, const std::vector<std::size_t>& places) {
    const auto rows = static_cast<std::size_t>(tensor.shape.front());
    const std::size_t bytes = values.size() / rows;
    std::vector<char> some;
    for (const std::size_t place : places) {
        if (place >= rows) throw std::invalid_argument("there is no sample " + std::to_string(place));
        const auto first = values.begin() + static_cast<std::ptrdiff_t>(place * bytes);
        some.insert(some.end(), first, first + static_cast<std::ptrdiff_t>(bytes));
    }
    tensor.shape.front() = static_cast<std::int64_t>(places.size());
    values = std::move(some);
}

}  // namespace

Contender::Json Contender::write_outputs(const std::string& file) {
    if (Stream* data = current_stream()) {
        Gather first = data->gather();
        first.next = 0;
        first.fill();
    }
    const std::vector<float> predictions = session_->predict();
    write_npy(file, TT_F32, network_.node(network_.output()).shape, predictions.data());
    return Json::object();
}

// What the timed verb itself left, not what another pass would compute.
Contender::Json Contender::write_predicted(const std::string& file) {
    const std::string& output = network_.node(network_.output()).name;
    for (const TensorInfo& tensor : session_->tensors(TT_ACTIVATION)) {
        if (tensor.name != output) continue;
        std::vector<char> values(tensor.bytes());
        session_->context().read_tensor(tensor, values.data());
        write_npy(file, tensor.dtype, tensor.shape, values.data());
        return Json::object();
    }
    throw BackendError(TT_FAILED, "the backend does not show the activation '" + output +
                                      "', so nobody can see what its steps predict");
}

Contender::Json Contender::evaluate(const std::string& file) {
    Stream* test = stream("test");
    if (test == nullptr)
        throw BackendError(TT_UNSUPPORTED, "the backend reads no data, so it has no accuracy");
    const bool squared = network_.node(network_.output_loss()).kind == "squared_error";
    Score score(squared ? LossKind::kSquaredError : LossKind::kSoftmaxCrossEntropy,
                static_cast<std::size_t>(network_.classes()));
    Gather gather = test->gather();
    const std::int64_t* labels = labels_of(network_, session_->batch());
    // Of a prediction for each step all would be gigabytes for a language: its classes are enough.
    const Shape& shape = network_.node(network_.output()).shape;
    const auto classes = static_cast<std::size_t>(network_.classes());
    const bool of_steps = shape.size() > 2;
    const std::size_t rows = of_steps ? static_cast<std::size_t>(shape[1]) : 1;
    std::vector<float> all;
    std::vector<std::int64_t> answers;
    std::size_t seen = 0;
    for (gather.next = 0; gather.next < gather.batches; ++gather.next) {
        gather.fill();
        const std::vector<float> predictions = session_->predict();
        // The last batch is filled up with samples that were scored already.
        const std::size_t fresh = std::min(gather.batch_size, test->samples() - seen);
        seen += fresh;
        score.add(predictions.data(), labels, fresh * rows);
        const auto end = predictions.begin() + static_cast<std::ptrdiff_t>(fresh * rows * classes);
        if (!of_steps) all.insert(all.end(), predictions.begin(), end);
        for (auto row = predictions.begin(); of_steps && row != end;
             row += static_cast<std::ptrdiff_t>(classes))
            answers.push_back(Score::answer(&*row, classes));
    }
    const auto samples = static_cast<std::int64_t>(seen);
    if (of_steps)
        write_npy(file, TT_I64, {samples, shape[1]}, answers.data());
    else
        write_npy(file, TT_F32, {samples, network_.classes()}, all.data());
    return {{"accuracy", score.accuracy()}, {"loss", score.loss()}, {"samples", score.samples()}};
}

Contender::Json Contender::dump(const std::string& role, const std::string& folder) {
    make_folder(folder);
    Json names = Json::array();
    for (const TensorInfo& tensor : session_->tensors(parse_role(role))) {
        const std::vector<char> values = read(session_->context(), tensor);
        write_npy(file_of(folder, tensor), tensor.dtype, tensor.shape, values.data());
        names.push_back(tensor.name);
    }
    return {{"tensors", names}};
}

Contender::Json Contender::show(const std::optional<std::vector<std::size_t>>& places,
                                const std::string& folder) {
    make_folder(folder);
    PluginContext& context = session_->context();
    std::vector<std::pair<TensorInfo, std::vector<char>>> states;
    for (const TensorInfo& state : session_->tensors(TT_STATE))
        states.emplace_back(state, read(context, state));
    gradient();
    Json names = Json::array();
    for (TensorInfo tensor : session_->tensors(TT_ACTIVATION)) {
        std::vector<char> values = read(context, tensor);
        if (places) take_rows(tensor, values, *places);
        write_npy(file_of(folder, tensor), tensor.dtype, tensor.shape, values.data());
        names.push_back(tensor.name);
    }
    for (const auto& [state, values] : states) context.write_tensor(state, values.data());
    return {{"tensors", names}};
}

}  // namespace timetrial
