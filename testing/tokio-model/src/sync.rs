//! Channels: tokio's own, with a scheduling point before each operation.

/// Shows nothing of what is inside, and so asks nothing of it, as tokio's own.
macro_rules! debug {
    ($($name:ident)*) => {$(
        impl<T> std::fmt::Debug for $name<T> {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(stringify!($name))
            }
        }
    )*};
}

pub mod oneshot {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    pub use tokio::sync::oneshot::error;
    use tokio::sync::oneshot::{self as real, error::RecvError};

    use crate::step;

    pub struct Sender<T>(real::Sender<T>);

    pub struct Receiver<T>(real::Receiver<T>);

    debug! { Sender Receiver }

    pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = real::channel();
        (Sender(sender), Receiver(receiver))
    }

    impl<T> Sender<T> {
        pub fn send(self, value: T) -> Result<(), T> {
            step();
            self.0.send(value)
        }
    }

    impl<T> Future for Receiver<T> {
        type Output = Result<T, RecvError>;

        fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
            step();
            Pin::new(&mut self.0).poll(context)
        }
    }
}

pub mod mpsc {
    use std::task::{Context, Poll};

    use shuttle::future::block_on;
    pub use tokio::sync::mpsc::error;
    use tokio::sync::mpsc::{
        self as real,
        error::{SendError, TryRecvError, TrySendError},
    };

    use crate::step;

    pub struct Sender<T>(real::Sender<T>);

    pub struct Receiver<T>(real::Receiver<T>);

    pub struct UnboundedSender<T>(real::UnboundedSender<T>);

    pub struct WeakUnboundedSender<T>(real::WeakUnboundedSender<T>);

    pub struct UnboundedReceiver<T>(real::UnboundedReceiver<T>);

    debug! { Sender Receiver UnboundedSender WeakUnboundedSender UnboundedReceiver }

    pub fn channel<T>(bound: usize) -> (Sender<T>, Receiver<T>) {
        let (sender, receiver) = real::channel(bound);
        (Sender(sender), Receiver(receiver))
    }

    pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
        let (sender, receiver) = real::unbounded_channel();
        (UnboundedSender(sender), UnboundedReceiver(receiver))
    }

    impl<T> Sender<T> {
        pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
            step();
            self.0.try_send(value)
        }
    }

    impl<T> Receiver<T> {
        pub async fn recv(&mut self) -> Option<T> {
            step();
            self.0.recv().await
        }

        pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
            step();
            self.0.poll_recv(context)
        }

        pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
            step();
            self.0.try_recv()
        }

        pub fn blocking_recv(&mut self) -> Option<T> {
            block_on(self.recv())
        }
    }

    impl<T> UnboundedSender<T> {
        pub fn send(&self, value: T) -> Result<(), SendError<T>> {
            step();
            self.0.send(value)
        }

        pub fn downgrade(&self) -> WeakUnboundedSender<T> {
            WeakUnboundedSender(self.0.downgrade())
        }
    }

    impl<T> Clone for WeakUnboundedSender<T> {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    impl<T> WeakUnboundedSender<T> {
        pub fn upgrade(&self) -> Option<UnboundedSender<T>> {
            step();
            self.0.upgrade().map(UnboundedSender)
        }
    }

    impl<T> UnboundedReceiver<T> {
        pub async fn recv(&mut self) -> Option<T> {
            step();
            self.0.recv().await
        }

        pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
            step();
            self.0.try_recv()
        }
    }
}

pub mod watch {
    use tokio::sync::watch::{self as real, error::RecvError};
    pub use tokio::sync::watch::{Ref, error};

    use crate::step;

    pub struct Sender<T>(real::Sender<T>);

    pub struct Receiver<T>(real::Receiver<T>);

    debug! { Sender Receiver }

    impl<T> Sender<T> {
        pub fn new(value: T) -> Self {
            Self(real::Sender::new(value))
        }

        pub fn subscribe(&self) -> Receiver<T> {
            Receiver(self.0.subscribe())
        }

        pub fn borrow(&self) -> Ref<'_, T> {
            step();
            self.0.borrow()
        }

        pub fn send_modify(&self, modify: impl FnOnce(&mut T)) {
            step();
            self.0.send_modify(modify);
        }
    }

    impl<T> Clone for Receiver<T> {
        fn clone(&self) -> Self {
            Self(self.0.clone())
        }
    }

    impl<T> Receiver<T> {
        pub async fn wait_for(
            &mut self,
            condition: impl FnMut(&T) -> bool,
        ) -> Result<Ref<'_, T>, RecvError> {
            step();
            self.0.wait_for(condition).await
        }
    }
}
