import { readFile, writeFile } from 'node:fs/promises'
import { operations } from './operations.ts'
import { failPlatform } from './platform/errors.ts'
import { errorMeanings, type Meaning } from './platform/http/error-catalogue.ts'

const introduction = `# Errors

Every refusal is a problem record (RFC 9457), \`application/problem+json\`, and this page lists each code. \`npm run errors\` generates it from the
operations.

\`\`\`json
{
  "type": "https://pay.example.com/problems/duplicate-payment",
  "title": "Duplicate Payment",
  "status": 409,
  "detail": "This credential was already used. Each credential pays once.",
  "requestId": "req_01m7yt7rkmennbfhq2tbv5qtak"
}
\`\`\`

Branch on the code, which is the last part of \`type\`; titles and details may change. \`GET {type}\` returns a page
with the causes of the error, its fix and the operations that return it; \`GET {type}.md\` is the same page as Markdown. \`requestId\` is also in the header \`X-Request-Id\` and in every log line of the request.

| member | on |
|---|---|
| \`errors\`: a list of \`{ path, message }\`, \`path\` a JSON Pointer (RFC 6901); all faults in the form of the request at once, at most 100. Faults that only the stored data shows are reported after these are corrected | \`validation-error\`, \`address-format-invalid\`, \`token-not-supported\`, \`child-address-not-found\` (422), \`quote-mismatch\`, \`policy-loosening-denied\` |
| \`reason\`: the payment protocol's own code ([x402.md](x402.md)) | \`payment-verification-failed\`, \`settlement-failed\`, \`payment-voided\` |
| \`reason\`: \`zero\`, \`too-many-digits\`, \`too-large\` or \`not-a-decimal\` | \`amount-invalid\` |
| \`limit\`, \`current\`, \`upgradeUrl\` | the errors titled Plan Limit Reached |
| header \`Retry-After\`, in seconds | every 503, and \`rate-limit-exceeded\`, \`too-many-open-payments\`, \`idempotency-in-progress\`, \`delivery-in-progress\`, \`payment-not-refundable\`, \`approved-payment-not-open\` where a later repeat can succeed |

A resource of another organisation or environment gets the same response as one that never existed.
`

const file = new URL('../../../docs/errors.md', import.meta.url)
const text = errorsPage()

if (process.argv.includes('--check')) {
  const committed = await readFile(file, 'utf8').catch(() => '')
  if (committed !== text) {
    console.error('docs/errors.md is out of date. Run: npm run errors')
    process.exitCode = 1
  }
} else {
  await writeFile(file, text)
}

function errorsPage(): string {
  const meanings = errorMeanings(operations)
  const own = [...Map.groupBy(meanings.map(ofTables), lineOf).values()].flatMap(([first, ...others]) => {
    const members = [first, ...others].flatMap((meaning) => meaning?.operations ?? [])
    return first === undefined || members.length === 0 ? [] : [{ ...first, operations: members }]
  })
  const anywhere = meanings.filter(
    (meaning) =>
      Object.hasOwn(failPlatform.table, meaning.code) &&
      (isUnnamed(meaning) || !own.some(({ code }) => code === meaning.code)),
  )
  const shown = new Set(anywhere.map(lineOf))
  return [
    introduction,
    '## Errors of every operation\n',
    ...table(['code', 'status', 'detail'], anywhere.toSorted(byStatus).map(cells)),
    '\n## Errors of particular operations\n',
    ...table(
      ['code', 'status', 'detail', 'operations'],
      own
        .filter((meaning) => !shown.has(lineOf(meaning)))
        .toSorted(byStatus)
        .map((meaning) => [...cells(meaning), names(meaning)]),
    ),
    '',
  ].join('\n')
}

/** Whether an operation returns the error that does not name it. */
function isUnnamed({ code, operations: members }: Meaning): boolean {
  return members.some(({ errors = {} }) => !Object.hasOwn(errors, code))
}

/** The error with only those operations whose own table has it. */
function ofTables(meaning: Meaning): Meaning {
  const members = meaning.operations.filter(({ errors = {} }) => Object.hasOwn(errors, meaning.code))
  return { ...meaning, operations: members }
}

/** Meanings that differ only in their causes share a line. */
function lineOf({ code, entry }: Meaning): string {
  return cells({ code, entry, operations: [] }).join()
}

function byStatus(left: Meaning, right: Meaning): number {
  return left.entry.status - right.entry.status || left.code.localeCompare(right.code, 'en')
}

function cells({ code, entry }: Meaning): string[] {
  return [`\`${code}\``, String(entry.status), entry.detail.replaceAll('|', '\\|')]
}

function names({ operations: members }: Meaning): string {
  return members.map(({ id }) => `\`${id}\``).join(', ')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)]
}
