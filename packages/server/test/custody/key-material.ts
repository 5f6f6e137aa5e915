import { readFileSync } from 'node:fs'
import { evmAccountPath, hdMaster, hdPrivateChild, hdPrivatePath } from '@purser/protocol'
import { z } from 'zod'
import { createSignatures } from '../../src/chain/index.ts'
import { createKeyRing, decrypt } from '../../src/custody/key-encryption.ts'
import { localKeyEncryption } from '../../src/custody/key-sources.ts'
import { wrappedServiceKeys } from '../../src/custody/service-keys.ts'
import { wrappedSeeds } from '../../src/custody/wallet-keys.ts'
import type { Db } from '../../src/platform/db/db.ts'
import { systemRandom } from '../../src/platform/random.ts'

/** A secret by name, and whether a process keeps it in OpenSSL's memory for its lifetime. */
export interface Secret {
  readonly name: string
  readonly bytes: Uint8Array
  readonly isKept: boolean
}

const Sealed = z.object({ sealed: z.instanceof(Uint8Array) })
/** Used for every request; none of them can move money alone. */
const kept = /^(settlement-token|answers|mpp-challenge|seal|file-link)-/

/** Every secret of a deployment, opened with its key file: the secrets that the tests look for. */
export async function everySecret(db: Db, file: string): Promise<Secret[]> {
  const kek = readFileSync(file)
  const ring = createKeyRing(localKeyEncryption(() => readFileSync(file), systemRandom))
  const secrets: Secret[] = [{ name: 'key-encryption key', bytes: kek, isKept: false }]
  for (const table of [wrappedServiceKeys, wrappedSeeds]) {
    for (const row of await table.list(db, '', { afterId: '', limit: 1_000 })) {
      const dataKey = await ring.key(row.fingerprint).unwrap(row.wrappedDataKey, row.associatedData)
      secrets.push({ name: `data key of ${row.id}`, bytes: dataKey, isKept: false })
      const bytes = decrypt(dataKey, Sealed.parse(row).sealed, row.associatedData)
      secrets.push({ name: row.id, bytes, isKept: kept.test(row.id) })
      if (row.id.startsWith('wallet-seed-')) secrets.push(...(await keysOf(bytes)))
    }
  }
  return secrets
}

/** The private keys of a seed's first account, down to its first forty addresses. */
async function keysOf(seed: Uint8Array): Promise<Secret[]> {
  const curve = await createSignatures()
  const master = hdMaster(seed, curve)
  const path = evmAccountPath(0)
  const nodes = path.map((_, depth) => hdPrivatePath(master, path.slice(0, depth + 1), curve))
  const account = nodes.at(-1) ?? master
  const children = Array.from({ length: 40 }, (_, index) => hdPrivateChild(account, index, curve))
  const named = (name: string, bytes: Uint8Array): Secret => ({ name, bytes, isKept: false })
  return [
    named('master key', master.privateKey),
    ...nodes.map(({ privateKey }, depth) => named(`key at depth ${depth + 1}`, privateKey)),
    ...children.map(({ privateKey }, index) => named(`key of child ${index}`, privateKey)),
  ]
}

/** Returns which of the secrets occur, raw or in hexadecimal, base64 or base64url. */
export function found(secrets: readonly Secret[], where: Uint8Array): string[] {
  const hay = Buffer.from(where.buffer, where.byteOffset, where.byteLength)
  return secrets.flatMap(({ name, bytes }) =>
    formsOf(bytes)
      .filter(([, form]) => hay.includes(form))
      .map(([kind]) => `${name} ${kind}`),
  )
}

/** Base64 without its last characters, which depend on the bytes after the secret. */
function formsOf(bytes: Uint8Array): readonly (readonly [string, Buffer])[] {
  const raw = Buffer.from(bytes)
  const hex = raw.toString('hex')
  const whole = Math.floor((raw.length * 8) / 6) - 1
  return [
    ['raw', raw],
    ['in hex', Buffer.from(hex)],
    ['in upper-case hex', Buffer.from(hex.toUpperCase())],
    ['in base64', Buffer.from(raw.toString('base64').slice(0, whole))],
    ['in base64url', Buffer.from(raw.toString('base64url').slice(0, whole))],
    ['in UTF-16 hex', Buffer.from(hex, 'utf16le')],
  ]
}
