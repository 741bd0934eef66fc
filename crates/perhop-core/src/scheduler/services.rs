//! Common parts of the schedulers of Asymmetric Best-Effort: their classes are its services.

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

/// The declarations of a scheduler whose classes are the services, under the AQM `rule` of its parameters.
macro_rules! services_share_a_rule {
    ($params:ty) => {
        fn aqms<'a>(params: &'a $params, _path: Option<&str>) -> Vec<(String, &'a AqmParams)> {
            vec![("rule".into(), &params.rule)]
        }
        fn aqms_mut(params: &mut $params) -> Vec<&mut AqmParams> {
            vec![&mut params.rule]
        }
        fn class_keys(_: &$params) -> Vec<ClassKey> {
            Service::ALL.iter().map(|service| ClassKey { name: service.name().into(), key: None }).collect()
        }
    };
}
pub(super) use services_share_a_rule;
