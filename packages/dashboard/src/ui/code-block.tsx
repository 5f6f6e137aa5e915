import { classes } from './classes.ts'
import { CopyButton } from './values.tsx'

/** Code or a body as text, with a button that copies it. It scrolls within itself. */
export function CodeBlock({ text, label, tall = false }: { text: string; label: string; tall?: boolean }) {
  return (
    <div className="relative min-w-0 rounded-card border border-line bg-well">
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
        tabIndex={0}
        className={classes('overflow-auto p-3 pr-10 font-mono text-sm', tall ? 'max-h-130' : 'max-h-80')}
      >
        <code>{text}</code>
      </pre>
      <span className="absolute top-0 right-0 rounded-card bg-well p-2">
        <CopyButton value={text} label={label} />
      </span>
    </div>
  )
}

/** A body as people read it: JSON is indented, anything else stays as it is. */
export function readable(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
