//! The pairs of programs that run beside each other.

use super::programs::{MALLEABLE, RIGID, Start};

/// Names of the programs N and M.
pub type Pair = (&'static str, &'static str);

/// A value of --mix.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// The paper's 24.
    Paper,
    /// Each N with each M.
    All,
    One(Pair),
}

pub fn parse(text: &str) -> Result<Asked, String> {
    match text {
        "paper" => return Ok(Asked::Paper),
        "all" => return Ok(Asked::All),
        _ => {}
    }
    let find = |list: &[(&'static str, Start)], name: &str| {
        list.iter().map(|p| p.0).find(|n| *n == name.trim())
    };
    let names = text.split_once('+');
    names.and_then(|(n, m)| Some(Asked::One((find(&RIGID, n)?, find(&MALLEABLE, m)?)))).ok_or_else(
        || {
            let list = |programs: &[(&'static str, Start)]| {
                programs.iter().map(|p| p.0).collect::<Vec<_>>().join(", ")
            };
            format!(
                "expected N+M, with N one of {} and M one of {}; or paper, or all",
                list(&RIGID),
                list(&MALLEABLE)
            )
        },
    )
}

/// The mixes M1 to M24 of the paper: each N with its partners. The first column is M1 to M4, and so
/// on. Only M1 to M5, M7 and M9 are legible there. The others are chosen so that each N has six
/// different partners, and each M three. freqmine replaces RNASeq.
const PAPER: [(&str, [&str; 6]); 4] = [
    ("blackscholes", ["particlefilter", "heartwall", "streamcluster", "ep", "cg", "srad"]),
    ("blastn", ["srad", "leukocyte", "ep", "cg", "freqmine", "particlefilter"]),
    ("fft3d", ["leukocyte", "srad", "heartwall", "freqmine", "cg", "streamcluster"]),
    ("pathfinder", ["ep", "streamcluster", "particlefilter", "leukocyte", "freqmine", "heartwall"]),
];

fn paper() -> impl Iterator<Item = Pair> {
    (0..6).flat_map(|column| PAPER.map(|(n, partners)| (n, partners[column])))
}

/// The first eight of the paper: each N twice.
const DEFAULT: usize = 8;
const QUICK: [Pair; 2] = [("blackscholes", "particlefilter"), ("pathfinder", "ep")];

/// Return the pairs that `asked` names, or the default ones.
pub fn chosen(asked: &[Asked], quick: bool) -> Vec<Pair> {
    match (asked, quick) {
        ([], true) => QUICK.to_vec(),
        ([], false) => paper().take(DEFAULT).collect(),
        _ => asked.iter().flat_map(one).collect(),
    }
}

fn one(asked: &Asked) -> Vec<Pair> {
    match asked {
        Asked::Paper => paper().collect(),
        Asked::All => RIGID.iter().flat_map(|n| MALLEABLE.map(|m| (n.0, m.0))).collect(),
        Asked::One(pair) => vec![*pair],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_by_name() {
        assert_eq!(parse("blackscholes+ep"), Ok(Asked::One(("blackscholes", "ep"))));
        assert_eq!(parse("all"), Ok(Asked::All));
        assert_eq!(parse("paper"), Ok(Asked::Paper));
        for bad in ["", "ep", "ep+cg", "blastn+blastp", "ep+blastn", "blastn+ep+cg"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(chosen(&[Asked::All], false).len(), RIGID.len() * MALLEABLE.len());
    }

    #[test]
    fn the_paper_mixes_everything_evenly() {
        let all: Vec<Pair> = paper().collect();
        assert_eq!((all[3], all[4]), (("pathfinder", "ep"), ("blackscholes", "heartwall")));
        for m in &MALLEABLE[..8] {
            assert_eq!(all.iter().filter(|p| p.1 == m.0).count(), 3, "{}", m.0);
        }
        let twice = |i: usize| all[..i].contains(&all[i]);
        assert!(!(0..24).any(twice));
    }
}
