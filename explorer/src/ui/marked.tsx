// Texts of the program, in which backticks set code off: as text nodes, never as HTML.

/** The text with its code set in another font. */
export function Marked(props: { text: string }) {
  const parts = props.text.split("`");
  if (parts.length % 2 === 0) return <>{props.text}</>;
  return <>{parts.map((part, i) => (i % 2 === 1 ? <code key={`${i} ${part}`}>{part}</code> : part))}</>;
}
