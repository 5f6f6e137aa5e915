import { hash } from 'node:crypto'

/**
 * Returns the name of an advisory lock that depends on a caller's text. PostgreSQL's hash of a name can be inverted: with the text itself in the name, a
 * caller could choose one whose lock is any other, such as that of another tenant's payments. Nobody chooses a SHA-256.
 */
export function lockNameOfText(kind: string, text: string): string {
  return `${kind}:${hash('sha256', text)}`
}
