import { createHmac } from 'node:crypto'
import { signWebhook, standardSigningText } from '@purser/protocol'
import type { ServiceSealPort } from '../../../custody/service-seal.ts'
import { unixSeconds } from '../../../platform/clock.ts'
import type { Deps, Tenant } from '../../../platform/ctx.ts'
import {
  type PagePayments,
  payForPages,
  type ReplayCharges,
  replayCost,
} from '../../../platform/event-streams/replay-cost.ts'
import type { SseConnection } from '../../../platform/event-streams/response.ts'
import { OpenStream } from '../../../platform/event-streams/streams.ts'
import type { Reader } from '../../../platform/reader.ts'
import { bodyOf, deliveryHeaders } from '../delivery/send.ts'
import type { Entry, Following, Page, StreamPosition } from './store.ts'

export interface Listening extends Following {
  readonly tenant: Tenant
  /** The account or organisation whose position the stream takes. */
  readonly owner: string
  readonly reader: Reader
  readonly secret: string
  /** Whether the stream continues with future events. */
  readonly follows: boolean
  /** Charges the caller for past events. Without it they are free. */
  readonly charges?: ReplayCharges | undefined
}

/** Most buffered bytes of a reader before more is sent: signatures must not age in a buffer. */
const waitingBytesMax = 65_536
/** Bytes that a past event counts for at least: its signatures take as long as sending these. */
const eventBytesMin = 4_096

/** One open stream: its filter, its position, and the connection to its reader. */
export class Listener extends OpenStream implements Following {
  readonly tenant: Tenant
  readonly types: readonly string[] | undefined
  readonly secret: string
  readonly follows: boolean
  position: StreamPosition
  /** The round in which events were last read for it. */
  readIn = 0
  readonly #payments: PagePayments
  /** Events of earlier transactions are past ones; undefined before the first read. New ones are free: the tenant paid for what wrote them. */
  #pastBefore: bigint | undefined
  /** Whether past events may be left. An older transaction that is open may keep them from being read for minutes. */
  #isReplay = true
  #isPaying = false

  constructor(listening: Listening, line: SseConnection) {
    super({ ...listening, environment: listening.tenant.environment }, line)
    this.tenant = listening.tenant
    this.types = listening.types
    this.secret = listening.secret
    this.follows = listening.follows
    this.position = listening.position
    this.#payments = payForPages(listening.charges)
  }

  /** Whether its reader accepts more, and its caller may have more sent. */
  get isReady(): boolean {
    return this.line.isOpen && !this.#isPaying && this.line.waiting < waitingBytesMax
  }

  /** Takes note of a page before it is sent: of the first one, when it was read. */
  begin({ begunBefore }: Page): void {
    this.#pastBefore ??= begunBefore
  }

  /** Whether the entry may have been written before the first read. */
  isPast({ writtenBy }: StreamPosition): boolean {
    return this.#pastBefore === undefined || BigInt(writtenBy) < this.#pastBefore
  }

  /**
   * Charges the past events of a page that were sent, once the position is after them; a page of which more follow, and whose events may have other types,
   * costs at least a token. If more past events may follow at once, resolves when the next page may be read, or the stream is closed.
   */
  async payFor(past: readonly Uint8Array[], { isFull }: Pick<Page, 'isFull'>): Promise<void> {
    if (!this.#isReplay) return
    this.#isReplay = this.isPast(this.position)
    const cost = Math.max(isFull ? 1 : 0, replayCost(past, eventBytesMin))
    if (!isFull || !this.#isReplay) return this.#payments.charge(cost)
    this.#isPaying = true
    await this.#payments.pay(cost, this.line)
    this.#isPaying = false
  }
}

/**
 * Encodes a delivery for the stream: the headers and the raw body that a webhook would get now, signed with the listener's secret
 * and the service's key to its tenant.
 */
export async function frameOf(
  deps: Pick<Deps, 'clock'> & ServiceSealPort,
  { tenant, secret }: Pick<Listening, 'tenant' | 'secret'>,
  entry: Entry,
): Promise<Buffer> {
  const { eventId, type, position } = entry
  const text = bodyOf(entry)
  const body = Buffer.from(text)
  const timestamp = unixSeconds(deps.clock.now())
  const ed25519 = await deps.serviceSeal.signTo(tenant, standardSigningText(eventId, String(timestamp), body))
  const signers = { secrets: [secret], signEd25519: () => ed25519, hmac }
  const signed = signWebhook({ id: eventId, timestamp, body }, signers)
  const headers = { ...deliveryHeaders, ...signed }
  return Buffer.from(`id: ${position.id}\ndata: ${JSON.stringify({ eventId, type, headers, body: text })}\n\n`)
}

function hmac(key: Uint8Array, message: Uint8Array): Uint8Array {
  return createHmac('sha256', key).update(message).digest()
}
