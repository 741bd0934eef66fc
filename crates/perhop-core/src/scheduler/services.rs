//! Common parts of the schedulers of Asymmetric Best-Effort: their classes are its services.

use super::ClassKey;
use crate::abe::Service;

/// The methods of a discipline whose classes are the services.
macro_rules! classes_are_services {
    () => {
        fn classes(&self) -> usize {
            Service::ALL.len()
        }
        fn class_name(&self, class: usize) -> &str {
            Service::ALL[class].name()
        }
        #[inline]
        fn class_of(&self, packet: &Header) -> usize {
            Service::of(packet.dscp).index()
        }
    };
}
pub(super) use classes_are_services;

/// The services, as classes of a scheduler.
pub(super) fn services() -> Vec<ClassKey> {
    Service::ALL.iter().map(|service| ClassKey { name: service.name().into(), key: None }).collect()
}
