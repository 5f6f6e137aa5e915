import { Ban, CircleCheck, UserCheck } from 'lucide-react'
import type { PolicyLine } from './policy-words.ts'

const looks = {
  allows: { icon: CircleCheck, tone: 'text-settled', word: 'Allowed: ' },
  person: { icon: UserCheck, tone: 'text-held', word: 'Needs approval: ' },
  refuses: { icon: Ban, tone: 'text-ink-3', word: 'Refused: ' },
} as const

/** The sentences of a policy, each with what it does. */
export function PolicyLines({ lines }: { lines: readonly PolicyLine[] }) {
  return (
    <ul className="flex flex-col gap-2">
      {lines.map(({ kind, text }) => {
        const { icon: Icon, tone, word } = looks[kind]
        return (
          <li key={text} className="flex gap-2">
            <Icon className={`mt-0.5 size-4 shrink-0 ${tone}`} aria-hidden />
            <span className="min-w-0 break-words">
              <span className="sr-only">{word}</span>
              {text}
            </span>
          </li>
        )
      })}
    </ul>
  )
}
