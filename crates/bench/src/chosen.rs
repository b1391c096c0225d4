//! Values from the command line.

use clap::ValueEnum;

/// Return whether `list` names `name`. An empty list names all.
pub fn is_chosen(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|n| n == name)
}

/// Return `list`, or `default` if it is empty.
pub fn or_default<T: Clone>(list: &[T], default: impl IntoIterator<Item = T>) -> Vec<T> {
    if list.is_empty() { default.into_iter().collect() } else { list.to_vec() }
}

/// Return the name of an option's value.
pub fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |v| v.get_name().into())
}

#[cfg(test)]
pub mod tests {
    /// Parse the options of a benchmark.
    pub fn parse<T: clap::Args>(line: &str) -> Result<T, clap::Error> {
        let command = T::augment_args(clap::Command::new("bench").no_binary_name(true));
        T::from_arg_matches(&command.try_get_matches_from(line.split_whitespace())?)
    }
}
