import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { type EventField, type EventType, eventCatalogue, eventTypes, newTypeId } from '@purser/protocol'
import { samplePayload } from './features/webhooks/listen/trigger.ts'
import { instantOf } from './platform/clock.ts'

const introduction = `# Events

Every event type that a webhook receives, with its payload and a sample. \`npm run events\` generates this page from the event catalogue.

A delivery is a \`POST\` of one JSON object, signed as [webhooks](webhooks.md#verify-without-the-sdk) describes:

| member | type | meaning |
|---|---|---|
| \`eventId\` | string | The event. It is the same in every attempt and every resend: process each \`eventId\` once. |
| \`type\` | string | One of the types below. Respond with 2xx to a type that you do not know: later versions add some. |
| \`payload\` | object | The members listed for the type. Later versions may add members; none is removed or changes its type. |

Amounts are decimals in whole tokens, as strings. Times are ISO 8601 in UTC. The samples have the values of \`GET /events/types\` and
\`purser trigger\`, which sends any of them to your server.
`

const file = new URL('../../../docs/events.md', import.meta.url)
const text = eventsPage()

if (process.argv.includes('--check')) {
  const committed = await readFile(file, 'utf8').catch(() => '')
  if (committed !== text) {
    console.error('docs/events.md is out of date. Run: npm run events')
    process.exitCode = 1
  }
} else {
  await writeFile(file, text)
}

function eventsPage(): string {
  const index = eventTypes.map((type) => `| [\`${type}\`](#${anchorOf(type)}) | ${eventCatalogue[type].description} |`)
  return [introduction, '| type | published |', '|---|---|', ...index, '', ...eventTypes.flatMap(section)].join('\n')
}

/** One event type: its description, a sample delivery, and the members of its payload. */
function section(type: EventType): string[] {
  const { description, fields } = eventCatalogue[type]
  const members = Object.entries(fields).map(
    ([name, field]) => `| \`${name}\` | ${typeOf(field)} | ${field.description} |`,
  )
  return [
    `## \`${type}\`\n`,
    `${description}\n`,
    '```json',
    JSON.stringify(sampleDelivery(type), null, 2),
    '```\n',
    '| member | type | meaning |',
    '|---|---|---|',
    ...members,
    '',
  ]
}

function typeOf(field: EventField<unknown>): string {
  const type = field.isTime ? 'time' : field.type
  return field.isNullable ? `${type} or null` : type
}

/** The body of a sample delivery. Its ids, hashes and addresses are derived from the type, so that the page changes with the catalogue alone. */
function sampleDelivery(type: EventType) {
  const now = instantOf(Date.parse('2026-01-15T12:00:00.000Z'))
  let drawn = 0
  const random = {
    bytes: (length: number) => createHash('sha256').update(`${type} ${drawn++}`).digest().subarray(0, length),
  }
  const eventId = newTypeId('evt', now.getTime(), random.bytes(10))
  return { eventId, type, payload: samplePayload(type, { clock: { now: () => now }, random }) }
}

/** The anchor that the guides give this heading. */
function anchorOf(type: EventType): string {
  return type.replaceAll(/[^a-z0-9_-]/g, '')
}
