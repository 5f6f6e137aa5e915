import { z } from 'zod'

const kinds: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  nan: 'a number',
  int: 'an integer',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
  record: 'an object',
  null: 'null',
}
const kindOf = (name: string): string => kinds[name] ?? name

/** Names what a value must be, and what it is instead: "must be text, not a number". */
export function wrongKind(expected: string, input: unknown): string {
  const [must, is] = [kindOf(expected), kindOf(z.core.util.parsedType(input))]
  const isNoNumber = is === 'a number' && (must === is || must === 'an integer')
  return isNoNumber ? `must be ${must}` : `must be ${must}, not ${is}`
}

/** Words every fault of a form alike. A schema’s own words have precedence. */
export const plainFaults: z.core.ParseContext<z.core.$ZodIssue> = { error: faultWords }

function faultWords(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.input === undefined && missingCodes.has(issue.code)) return 'is missing'
  switch (issue.code) {
    case 'invalid_type':
      return wrongKind(issue.expected, issue.input)
    case 'invalid_value':
      return mustBeOneOf(issue.values)
    case 'invalid_union':
      return Array.isArray(issue.options) ? mustBeOneOf(issue.options) : undefined
    case 'too_small':
      return issue.origin === 'string' && Number(issue.minimum) === 1
        ? 'must not be empty'
        : sizeWords(issue, issue.minimum, issue.inclusive === false ? 'more than' : 'at least')
    case 'too_big':
      return sizeWords(issue, issue.maximum, issue.inclusive === false ? 'less than' : 'at most')
    case 'invalid_key':
      return `has a name that ${issue.issues.map(({ message }) => message).join(', and ')}`
    default:
      return undefined
  }
}

const missingCodes: ReadonlySet<unknown> = new Set(['invalid_type', 'invalid_value', 'invalid_union'])

function mustBeOneOf(values: readonly unknown[]): string {
  return values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(', ')}`
}

function sizeWords({ origin }: { readonly origin: string }, limit: number | bigint, bound: string): string {
  const unit = { string: 'character', array: 'item' }[origin]
  return unit === undefined
    ? `must be ${bound} ${limit}`
    : `must have ${bound} ${limit} ${unit}${limit === 1 ? '' : 's'}`
}
