"""Loss and gradients of a Keras 3 model without an update, in the words of its backend."""


def function(backend, keras, model):
    """(images, labels) -> (loss, gradients in the order of model.trainable_variables)."""
    return {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[backend](keras, model)


def _tensorflow(keras, model):
    import tensorflow as tf

    variables = [variable.value for variable in model.trainable_variables]

    @tf.function
    def differentiate(images, labels):
        with tf.GradientTape() as tape:
            loss = model.compute_loss(images, labels, model(images, training=True))
        return loss, tape.gradient(loss, variables)

    return lambda images, labels: differentiate(tf.convert_to_tensor(images), tf.convert_to_tensor(labels))


def _jax(keras, model):
    import jax

    def loss_of(trainable, others, images, labels):
        prediction, _ = model.stateless_call(trainable, others, images, training=True)
        return model.compute_loss(images, labels, prediction)

    differentiate = jax.jit(jax.value_and_grad(loss_of))

    def find(images, labels):
        trainable = [variable.value for variable in model.trainable_variables]
        others = [variable.value for variable in model.non_trainable_variables]
        return jax.block_until_ready(differentiate(trainable, others, images, labels))

    return find


def _torch(keras, model):
    def find(images, labels):
        model.zero_grad()
        images, labels = keras.ops.convert_to_tensor(images), keras.ops.convert_to_tensor(labels)
        loss = model.compute_loss(images, labels, model(images, training=True))
        loss.backward()
        return loss.detach(), [variable.value.grad for variable in model.trainable_variables]

    return find
