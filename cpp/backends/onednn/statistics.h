// Mean and variance of each channel of a batch. oneDNN's own batch_norm adds up all values of a channel in
// float: of 65,536 values (64 images of 32x32) it is off by a part in 100,000, which later layers multiply.
// Here float holds few values at a time, and double the rest; the order is the same for any number of
// threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "onednn/tensor.h"

namespace timetrial::onednn {

// How images lie in memory: images x blocks x pixels x lanes, a channel being a lane of a block.
struct Lanes {
    std::int64_t images, blocks, pixels, lanes;

    // Of N x C x H x W. Null: in no such way.
    static std::optional<Lanes> of(const Desc& desc) {
        using Tag = dnnl::memory::format_tag;
        const dnnl::memory::dims dims = dims_of(desc);
        const std::int64_t pixels = dims[2] * dims[3];
        const std::int64_t stored =
            static_cast<std::int64_t>(desc.get_size() / sizeof(float)) / (dims[0] * pixels);
        for (const auto& [tag, lanes] :
             {std::pair{Tag::acdb, stored}, std::pair{Tag::abcd, std::int64_t{1}},
              std::pair{Tag::aBcd8b, std::int64_t{8}}, std::pair{Tag::aBcd16b, std::int64_t{16}}}) {
            const Desc candidate(dims, f32, tag, true);
            if (is_valid(candidate) && candidate == desc)
                return Lanes{dims[0], stored / lanes, pixels, lanes};
        }
        return std::nullopt;
    }
};

class Statistics {
  public:
    Statistics(Lanes lanes, const Tensor& source, const Tensor& mean, const Tensor& variance)
        : lanes_(lanes), source_(source), mean_(mean), variance_(variance) {}

    void operator()() const {
        const std::int64_t channels = mean_.stored_elements();
        const std::int64_t groups = (lanes_.lanes + most - 1) / most;  // of one block
#pragma omp parallel for schedule(static) if (source_.stored_elements() > worth_sharing)
        for (std::int64_t i = 0; i < lanes_.blocks * groups; ++i) {
            const std::int64_t block = i / groups, begin = i % groups * most;
            const std::int64_t left = std::min(begin + most, lanes_.lanes) - begin;
            if (lanes_.lanes == 1)
                tell_plane(block);
            else if (left == most)
                tell<Wide>(block, begin);
            else
                for (std::int64_t done = 0; done < left && block * lanes_.lanes + begin + done < channels;)
                    done += left - done >= 8 ? tell<Narrow>(block, begin + done)
                                             : tell<float>(block, begin + done);
        }
    }

  private:
    using Wide [[gnu::vector_size(64)]] = float;
    using Narrow [[gnu::vector_size(32)]] = float;
    static constexpr std::int64_t most = 16;
    static constexpr std::int64_t run = 64;  // values that float adds up
    static constexpr std::int64_t worth_sharing = 1 << 14;

    struct Sums {
        double distances[most] = {}, squares[most] = {};
    };

    // The channels of a block from `lane` on, as many as V has. How many that is.
    template <typename V>
    std::int64_t tell(std::int64_t block, std::int64_t lane) const {
        constexpr std::int64_t width = sizeof(V) / sizeof(float);
        const float* const begin = at(block) + lane;
        Sums sums;
        V near;
        std::memcpy(&near, begin, sizeof near);
        for (std::int64_t image = 0; image < lanes_.images; ++image)
            add<V>(begin + image * image_step(), lanes_.pixels, lanes_.lanes, near, sums);
        for (std::int64_t i = 0; i < width; ++i)
            keep(block * lanes_.lanes + lane + i, begin[i], sums.distances[i], sums.squares[i]);
        return width;
    }

    // The one channel of a block: its neighbors take the place of lanes.
    void tell_plane(std::int64_t block) const {
        const float* const begin = at(block);
        Sums sums;
        const Wide near = Wide{} + *begin;
        const std::int64_t rows = lanes_.pixels / most;
        for (std::int64_t image = 0; image < lanes_.images; ++image) {
            const float* const x = begin + image * image_step();
            add<Wide>(x, rows, most, near, sums);
            add<float>(x + rows * most, lanes_.pixels % most, 1, *begin, sums);
        }
        keep(block, *begin, std::accumulate(sums.distances, sums.distances + most, 0.0),
             std::accumulate(sums.squares, sums.squares + most, 0.0));
    }

    // Of `rows` vectors, `step` values apart. The distances are those to a value which lies among the others,
    // so that hardly anything cancels.
    template <typename V>
    static void add(const float* x, std::int64_t rows, std::int64_t step, const V& near, Sums& sums) {
        constexpr std::int64_t width = sizeof(V) / sizeof(float);
        while (rows > 0) {
            V distances{}, squares{};
            for (std::int64_t left = std::min(run, rows); left > 0; --left, --rows, x += step) {
                V distance;
                std::memcpy(&distance, x, sizeof distance);
                distance -= near;
                distances += distance;
                squares += distance * distance;
            }
            float part[2][width];
            std::memcpy(part[0], &distances, sizeof distances);
            std::memcpy(part[1], &squares, sizeof squares);
            for (std::int64_t i = 0; i < width; ++i) sums.distances[i] += part[0][i];
            for (std::int64_t i = 0; i < width; ++i) sums.squares[i] += part[1][i];
        }
    }

    void keep(std::int64_t channel, float near, double distances, double squares) const {
        if (channel >= mean_.stored_elements()) return;  // padding
        const auto count = static_cast<double>(lanes_.images * lanes_.pixels);
        const double mean = distances / count;
        mean_.data()[channel] = static_cast<float>(near + mean);
        variance_.data()[channel] = static_cast<float>(std::max(squares / count - mean * mean, 0.0));
    }

    const float* at(std::int64_t block) const {
        return source_.data() + block * lanes_.pixels * lanes_.lanes;
    }
    std::int64_t image_step() const { return lanes_.blocks * lanes_.pixels * lanes_.lanes; }

    Lanes lanes_;
    Tensor source_, mean_, variance_;
};

}  // namespace timetrial::onednn
