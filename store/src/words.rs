//! Enums whose values are words in files.

/// Defines an enum whose values are words: in files (serde), in messages (`Display`), for
/// programs (`as_str`), and back (`parse`). Each word is written once.
///
/// ```
/// store::words! {
///     /// How fast.
///     #[derive(Default)]
///     pub enum Speed {
///         /// Not at all.
///         #[default]
///         Slow = "slow",
///         /// Very.
///         Fast = "fast",
///     }
/// }
/// assert_eq!(Speed::parse("fast"), Some(Speed::Fast));
/// assert_eq!(Speed::default().as_str(), "slow");
/// ```
#[macro_export]
macro_rules! words {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[$of_value:meta])* $value:ident = $word:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$of_value])* $value,)+
        }

        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$value),+];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// The value with this word.
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$value),)+
                    _ => None,
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl $crate::serde::Serialize for $name {
            fn serialize<S: $crate::serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Read;

                impl $crate::serde::de::Visitor<'_> for Read {
                    type Value = $name;

                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("a word")
                    }

                    fn visit_str<E: $crate::serde::de::Error>(self, word: &str) -> Result<$name, E> {
                        const WORDS: &[&str] = &[$($word),+];
                        $name::parse(word).ok_or_else(|| E::unknown_variant(word, WORDS))
                    }
                }

                from.deserialize_str(Read)
            }
        }
    };
}
