import { readFile, writeFile } from 'node:fs/promises'
import { operations } from './operations.ts'
import { type ErrorEntry, failPlatform } from './platform/errors.ts'
import { allErrors, errorsOf } from './platform/http/refusals.ts'

/** One error, and the operations whose own table has it. A code may have two: 404 if named in a path, 422 if named in a body. */
interface Refusal {
  readonly code: string
  readonly entry: ErrorEntry
  readonly operations: string[]
}

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

Branch on the code, which is the last part of \`type\`; titles and details may change. \`GET {type}\` answers a short page
for people. \`requestId\` is also in the header \`X-Request-Id\` and in every log line of the request.

| member | on |
|---|---|
| \`errors\`: a list of \`{ path, message }\`, \`path\` a JSON Pointer (RFC 6901); every fault at once | \`validation-error\`, \`address-format-invalid\`, \`token-not-supported\` |
| \`reason\`: the payment protocol's own code ([x402.md](x402.md)) | \`payment-verification-failed\`, \`settlement-failed\`, \`payment-voided\` |
| \`reason\`: \`zero\`, \`too-many-digits\`, \`too-large\` or \`not-a-decimal\` | \`amount-invalid\` |
| \`limit\`, \`current\`, \`upgradeUrl\` | the errors titled Plan Limit Reached |
| header \`Retry-After\`, in seconds | \`rate-limit-exceeded\`, \`idempotency-in-progress\`, every 503 |

A resource of another organisation or environment answers exactly like one that never existed.
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
  const own = ownRefusals()
  const anywhere = Object.entries(allErrors(operations))
    .filter(([code]) => Object.hasOwn(failPlatform.table, code) && !own.some((refusal) => refusal.code === code))
    .map(([code, entry]) => ({ code, entry, operations: [] }))
  return [
    introduction,
    '## What any operation may answer\n',
    ...table(['code', 'status', 'says'], anywhere.toSorted(byStatus).map(cells)),
    '\n## What single operations answer\n',
    ...table(
      ['code', 'status', 'says', 'operations'],
      own.toSorted(byStatus).map((refusal) => [...cells(refusal), names(refusal)]),
    ),
    '',
  ].join('\n')
}

/** Errors of single operations, in addition to those that every operation has. */
function ownRefusals(): Refusal[] {
  const found = new Map<string, Refusal>()
  for (const operation of operations) {
    for (const [code, entry] of Object.entries(errorsOf(operation))) {
      if (operation.errors === undefined || !Object.hasOwn(operation.errors, code)) continue
      const key = `${code} ${entry.status}`
      const refusal = found.get(key) ?? { code, entry, operations: [] }
      refusal.operations.push(operation.id)
      found.set(key, refusal)
    }
  }
  return [...found.values()]
}

function byStatus(left: Refusal, right: Refusal): number {
  return left.entry.status - right.entry.status || left.code.localeCompare(right.code, 'en')
}

function cells({ code, entry }: Refusal): string[] {
  return [`\`${code}\``, String(entry.status), entry.detail.replaceAll('|', '\\|')]
}

function names(refusal: Refusal): string {
  return refusal.operations.map((id) => `\`${id}\``).join(', ')
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (row: readonly string[]): string => `| ${row.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)]
}
