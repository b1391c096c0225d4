//! The pairs of programs that run beside each other.

use super::programs::Name::{self, *};
use super::programs::{MALLEABLE, RIGID};

/// A value of --mix.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// The paper's 24.
    Paper,
    /// Each N with each M.
    All,
    One(Name, Name),
}

pub fn parse(text: &str) -> Result<Asked, String> {
    match text {
        "paper" => return Ok(Asked::Paper),
        "all" => return Ok(Asked::All),
        _ => {}
    }
    let names = text.split_once('+').map(|(n, m)| (Name::parse(n.trim()), Name::parse(m.trim())));
    match names {
        Some((Some(n), Some(m))) if !n.is_malleable() && m.is_malleable() => Ok(Asked::One(n, m)),
        _ => {
            let list =
                |names: &[Name]| names.iter().map(|n| n.text()).collect::<Vec<_>>().join(", ");
            Err(format!(
                "expected N+M, with N one of {} and M one of {}; or paper, or all",
                list(&RIGID),
                list(&MALLEABLE)
            ))
        }
    }
}

/// The mixes M1 to M24 of the paper. Only M1 to M5, M7 and M9 are legible there. The others are
/// chosen so that each N has six different partners, and each M three. freqmine replaces RNASeq.
const PAPER: [(Name, Name); 24] = [
    (Blackscholes, Particlefilter),
    (Blastn, Srad),
    (Fft3d, Leukocyte),
    (Pathfinder, Ep),
    (Blackscholes, Heartwall),
    (Blastn, Leukocyte),
    (Fft3d, Srad),
    (Pathfinder, Streamcluster),
    (Blackscholes, Streamcluster),
    (Blastn, Ep),
    (Fft3d, Heartwall),
    (Pathfinder, Particlefilter),
    (Blackscholes, Ep),
    (Blastn, Cg),
    (Fft3d, Freqmine),
    (Pathfinder, Leukocyte),
    (Blackscholes, Cg),
    (Blastn, Freqmine),
    (Fft3d, Cg),
    (Pathfinder, Freqmine),
    (Blackscholes, Srad),
    (Blastn, Particlefilter),
    (Fft3d, Streamcluster),
    (Pathfinder, Heartwall),
];

/// The first eight of the paper: each N twice.
const DEFAULT: usize = 8;
const QUICK: [(Name, Name); 2] = [(Blackscholes, Particlefilter), (Pathfinder, Ep)];

/// Return the pairs that `asked` names, or the default ones.
pub fn chosen(asked: &[Asked], quick: bool) -> Vec<(Name, Name)> {
    match (asked, quick) {
        ([], true) => QUICK.to_vec(),
        ([], false) => PAPER[..DEFAULT].to_vec(),
        _ => asked.iter().flat_map(one).collect(),
    }
}

fn one(asked: &Asked) -> Vec<(Name, Name)> {
    match asked {
        Asked::Paper => PAPER.to_vec(),
        Asked::All => RIGID.iter().flat_map(|n| MALLEABLE.map(|m| (*n, m))).collect(),
        Asked::One(n, m) => vec![(*n, *m)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixes_by_name() {
        assert_eq!(parse("blackscholes+ep"), Ok(Asked::One(Blackscholes, Ep)));
        assert_eq!(parse("all"), Ok(Asked::All));
        assert_eq!(parse("paper"), Ok(Asked::Paper));
        for bad in ["", "ep", "ep+cg", "blastn+blastp", "ep+blastn", "blastn+ep+cg"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(chosen(&[Asked::All], false).len(), RIGID.len() * MALLEABLE.len());
    }

    #[test]
    fn the_paper_mixes_everything_evenly() {
        for n in [Blackscholes, Blastn, Fft3d, Pathfinder] {
            assert_eq!(PAPER.iter().filter(|p| p.0 == n).count(), 6);
        }
        for m in &MALLEABLE[..8] {
            assert_eq!(PAPER.iter().filter(|p| p.1 == *m).count(), 3, "{}", m.text());
        }
        let twice = |i: usize| PAPER[..i].contains(&PAPER[i]);
        assert!(!(0..24).any(twice));
    }
}
