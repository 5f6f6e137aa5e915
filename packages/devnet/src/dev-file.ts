import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { type Address, type Hex, isAddress, isHex } from '@purser/protocol'
import { isRecord } from './rpc.ts'

/** An account for test money. Its key is in dev.json, so it must never have real money. */
export interface DevPayer {
  readonly address: Address
  readonly privateKey: Hex
}

export interface DevChainRecord {
  readonly chainId: number
  readonly rpcUrl: string
  readonly tokens: Readonly<Record<string, Address>>
}

/** The facts about the running service that scripts need: the content of `$DATA_DIR/dev.json`. */
export interface DevRecord {
  readonly baseUrl: string
  readonly dashboardUrl: string
  /** Signs the owner in, once, within ten minutes of the start. */
  readonly signInUrl: string
  readonly organisationId: string
  readonly apiKey: string
  readonly walletId: string
  readonly payer: DevPayer
  readonly chains: Readonly<Record<string, DevChainRecord>>
}

/** State that one start keeps for the next. Anything missing is created again. */
export type Remembered = Partial<Pick<DevRecord, 'apiKey' | 'walletId' | 'payer'>>

/** Reads what an earlier start wrote. A file of another form is ignored, and the next write replaces it. */
export function readDevFile(file: string): Remembered {
  if (!existsSync(file)) return {}
  const found = parse(readFileSync(file, 'utf8'))
  if (!isRecord(found)) return {}
  const payer = readPayer(found.payer)
  return {
    ...(typeof found.apiKey === 'string' ? { apiKey: found.apiKey } : {}),
    ...(typeof found.walletId === 'string' ? { walletId: found.walletId } : {}),
    ...(payer === undefined ? {} : { payer }),
  }
}

/** The chains that the text of a dev.json names. Those of another form are left out. */
export function readDevChains(text: string): DevRecord['chains'] {
  const found = parse(text)
  const chains = isRecord(found) && isRecord(found.chains) ? Object.entries(found.chains) : []
  return Object.fromEntries(chains.filter((entry): entry is [string, DevChainRecord] => isChain(entry[1])))
}

function isChain(value: unknown): value is DevChainRecord {
  return (
    isRecord(value) &&
    typeof value.chainId === 'number' &&
    typeof value.rpcUrl === 'string' &&
    isRecord(value.tokens) &&
    Object.values(value.tokens).every((token) => typeof token === 'string' && isAddress(token))
  )
}

/** Writes the file for scripts, and one of variables for shells and `node --env-file` before it. */
export function writeDevFiles(files: { readonly devFile: string; readonly envFile: string }, record: DevRecord): void {
  const { baseUrl, apiKey, payer } = record
  writePrivately(files.envFile, `PURSER_BASE_URL=${baseUrl}\nPURSER_API_KEY=${apiKey}\nPAYER_KEY=${payer.privateKey}\n`)
  writePrivately(files.devFile, `${JSON.stringify(record, null, 2)}\n`)
}

/** Writes the file atomically, readable by its owner only: it contains an API key and an account's private key. */
function writePrivately(file: string, text: string): void {
  const half = `${file}.${process.pid}.half`
  rmSync(half, { force: true })
  writeFileSync(half, text, { mode: 0o600, flag: 'wx', flush: true })
  renameSync(half, file)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function readPayer(value: unknown): DevPayer | undefined {
  if (!isRecord(value) || typeof value.address !== 'string' || typeof value.privateKey !== 'string') return undefined
  const { address, privateKey } = value
  return isAddress(address) && isHex(privateKey) && privateKey.length === 66 ? { address, privateKey } : undefined
}
