import { networks } from '@purser/protocol'
import type { RecordedExample } from '../src/platform/http/openapi.ts'
import { formType } from './files/uploads.ts'
import { normalizer } from './normal-values.ts'
import { asKey, operationOf, sendRaw } from './raw-requests.ts'
import type { Sample } from './samples.ts'
import type { World } from './world.ts'

type Json = Readonly<Record<string, unknown>>

interface Call extends Sample {
  readonly headers?: Readonly<Record<string, string>>
  /** The response is not recorded before it fulfils this. */
  readonly until?: (response: Json) => boolean
  /** Members as they are when nothing has happened yet: on a slow machine something has before the response. */
  readonly atFirst?: Json
}

export interface ExampleRecorder {
  /** Calls an operation until the response is as expected, records it, and returns it; of a list, its first item. */
  record(id: string, call?: Call): Promise<Json>
  /** The first recorded call of each operation, with the first response of each other status. */
  readonly examples: ReadonlyMap<string, RecordedExample>
}

/** Calls operations of a world and keeps the calls as examples, with values that are the same in every run. */
export function exampleRecorder(world: World, key: string, addresses: readonly string[]): ExampleRecorder {
  const examples = new Map<string, RecordedExample>()
  const tokens = networks.flatMap((network) => network.tokens.map(({ address }) => address))
  const constants = new Set([...tokens, ...addresses].map((address) => address.toLowerCase()))

  async function send(id: string, call: Call, more: Readonly<Record<string, string>> = {}) {
    const { params = {}, query = '', body, form, headers = asKey(key) } = call
    const type = form === undefined ? {} : { 'content-type': formType }
    const sent = form ?? (body === undefined ? undefined : JSON.stringify(body))
    const requested = { params, query, headers: { ...headers, ...type, ...more }, body: sent }
    const answer = await sendRaw(world.base, operationOf(id), requested)
    if (answer.status >= 300) throw new Error(`${id}: ${answer.status} ${answer.text}`)
    return answer
  }

  async function record(id: string, call: Call = {}): Promise<Json> {
    const { status, headers, text } = await send(id, call)
    const received = Date.now()
    const isJson = headers.get('content-type')?.startsWith('application/json') === true
    const response: unknown = isJson ? JSON.parse(text) : text
    const first: Json = Object(Array.isArray(response) ? response[0] : response)
    if (call.until?.(first) === false) {
      if (received > until(id)) throw new Error(`${id} answers ${text}`)
      await new Promise((resolve) => setTimeout(resolve, 100))
      return record(id, call)
    }
    const normal = normalizer(received, constants)
    const request = normal(call.body)
    const shown = {
      status,
      ...(request === undefined ? {} : { request }),
      response: normal(shortOf(call.atFirst === undefined ? response : { ...first, ...call.atFirst })),
    }
    keep(id, shown)
    return first
  }

  /** Keeps the first call of each operation, and the first response with each other status. */
  function keep(id: string, shown: RecordedExample): void {
    const known = examples.get(id)
    if (known === undefined) return void examples.set(id, shown)
    if (known.status === shown.status || known.others?.[shown.status] !== undefined) return
    examples.set(id, { ...known, others: { ...known.others, [shown.status]: shown.response } })
  }

  const ends = new Map<string, number>()
  /** When to give up: a minute after the first call of the operation. */
  function until(id: string): number {
    const end = ends.get(id) ?? Date.now() + 60_000
    ends.set(id, end)
    return end
  }
  return { record, examples }
}

/** A response to read: of a list its first items, as many as are short, and of a long one inside also the first only. */
function shortOf(response: unknown): unknown {
  if (Array.isArray(response))
    return response.filter((_, index) => index === 0 || JSON.stringify(response.slice(0, index + 1)).length < 400)
  const members = Object.entries(Object(response)).map(([name, value]) => {
    const isLong = Array.isArray(value) && value.length > 2 && JSON.stringify(value).length > 1_000
    return [name, isLong ? value.slice(0, 1) : value]
  })
  return typeof response === 'object' && response !== null ? Object.fromEntries(members) : response
}
