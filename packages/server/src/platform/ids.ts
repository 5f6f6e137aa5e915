import { newTypeId, parseTypeId } from '@purser/protocol'
import { z } from 'zod'
import type { Clock } from './clock.ts'
import { named } from './named.ts'
import type { Random } from './random.ts'

/** All identifier prefixes, with what they identify. */
const identified = {
  byw: 'BYO wallet',
  mwt: 'master wallet',
  cad: 'child address',
  swp: 'sweep',
  bac: 'bank account',
  vlt: 'vault',
  sess: 'payment session',
  key: 'API key',
  wh: 'webhook',
  del: 'delivery',
  att: 'delivery attempt',
  evt: 'event',
  org: 'organisation',
  acc: 'account',
  pay: 'payment',
  plog: 'payment log record',
  rfd: 'refund',
  doc: 'vault document',
  fil: 'vault file',
  wtx: 'wallet transaction',
  qte: 'quote',
  wdr: 'withdrawal',
  apr: 'approval',
  reg: 'registry route',
  vat: 'vault token',
  req: 'request',
  aud: 'audit record',
  ctx: 'chain transaction',
  job: 'job',
  scr: 'screening',
  usr: 'person',
  ssn: 'sign-in session',
} as const

export type IdPrefix = keyof typeof identified

const idPrefixes = Object.keys(identified) as IdPrefix[]

export type Id<P extends IdPrefix> = `${P}_${string}`
export type OrganisationId = Id<'org'>
export type AccountId = Id<'acc'>
export type ApiKeyId = Id<'key'>
export type PaymentId = Id<'pay'>
export type PaymentLogId = Id<'plog'>
export type ByoWalletId = Id<'byw'>
export type MasterWalletId = Id<'mwt'>
export type ChildAddressId = Id<'cad'>
export type SweepId = Id<'swp'>
export type EventId = Id<'evt'>
export type RequestId = Id<'req'>

/** Returns the id of a payment's log record: the payment's own, with another prefix. Payments of older versions have a log id of its own random part. */
export function logIdOf(paymentId: PaymentId): PaymentLogId {
  return `plog_${paymentId.slice('pay_'.length)}`
}

/** Returns the id of the payment of a log whose id is `logIdOf` it. */
export function paymentIdOf(logId: PaymentLogId): PaymentId {
  return `pay_${logId.slice('plog_'.length)}`
}

/** A new TypeID: prefix, `_`, a UUIDv7 in 26 characters of base32, so ids sort by creation. */
export function newId<P extends IdPrefix>(prefix: P, deps: { clock: Clock; random: Random }): Id<P> {
  return newTypeId(prefix, deps.clock.now().getTime(), deps.random.bytes(10)) as Id<P>
}

/** Schema of an id with the given prefix. Any other prefix or alphabet is refused before the database sees it. */
export function id<P extends IdPrefix>(prefix: P): z.ZodType<Id<P>, Id<P>> {
  return idSchemas[prefix] as unknown as z.ZodType<Id<P>, Id<P>>
}

const idSchemas = Object.fromEntries(
  idPrefixes.map((prefix) => [
    prefix,
    z
      .string()
      .regex(new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`), `must be an identifier that begins with ${prefix}_`)
      .meta({ description: `Identifies the ${identified[prefix]}.`, example: `${prefix}_01h455vb4pex5vsknk084sn02q` }),
  ]),
)
/** `byw` is named `ByoWalletId`. */
named(
  Object.fromEntries(
    idPrefixes.map((prefix) => [
      `${identified[prefix].replaceAll(/(?:^|[ -])([a-zA-Z])([a-zA-Z]*)/g, (_, first: string, rest: string) => `${first.toUpperCase()}${rest.toLowerCase()}`)}Id`,
      idSchemas[prefix] ?? z.string(),
    ]),
  ),
)

/** Whether the text is an id with that prefix. */
export function isId<P extends IdPrefix>(prefix: P, text: string): text is Id<P> {
  return parseTypeId(text)?.prefix === prefix
}
