import { createPublicKey } from 'node:crypto'
import { type Address, parseAddress } from '@purser/protocol'
import type { ConfigFault } from './config-fault.ts'

/** Settings of the service's partners. An omitted partner is unavailable: operations that need it return 503 `partner-unavailable`. */
export interface PartnerSettings {
  readonly bridge?: {
    readonly baseUrl: string
    readonly apiKey: string
    readonly webhookPublicKey: string | undefined
  }
  /** Circle's attestation service; it needs no key, so it is enabled unless disabled. */
  readonly cctp?: { readonly baseUrl: string }
  readonly relay?: KeyedApi
  readonly lifi?: KeyedApi
  /** The contracts through which the test environment swaps and bridges, on every chain of a development deployment. */
  readonly sandbox?: { readonly pool: Address; readonly bridge: Address }
}

interface KeyedApi {
  readonly baseUrl: string
  readonly apiKey: string
}

type Env = Readonly<Record<string, string | undefined>>

/**
 * Reads the partner settings and adds every fault. A setting without its key is a fault, since the operator believes that the partner is
 * enabled.
 */
export function readPartners(env: Env, faults: ConfigFault[]): PartnerSettings {
  const bridge = readBridge(env, faults)
  const relay = readKeyed(env, faults, { name: 'RELAY', baseUrl: 'https://api.relay.link' })
  const lifi = readKeyed(env, faults, { name: 'LIFI', baseUrl: 'https://li.quest/v1' })
  const cctp = readUrl(env, faults, { name: 'CCTP_API_URL', baseUrl: 'https://iris-api.circle.com' })
  const sandbox = readSandbox(env, faults)
  return {
    cctp: { baseUrl: cctp },
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(bridge === undefined ? {} : { bridge }),
    ...(relay === undefined ? {} : { relay }),
    ...(lifi === undefined ? {} : { lifi }),
  }
}

function readBridge(env: Env, faults: ConfigFault[]): PartnerSettings['bridge'] {
  const keyed = readKeyed(env, faults, { name: 'BRIDGE', baseUrl: 'https://api.bridge.xyz/v0' })
  const webhookPublicKey = readPublicKey(env, faults)
  if (keyed === undefined) {
    if (webhookPublicKey !== undefined) faults.push(withoutKey('BRIDGE_WEBHOOK_PUBLIC_KEY', 'BRIDGE_API_KEY'))
    return undefined
  }
  return { ...keyed, webhookPublicKey }
}

function readSandbox(env: Env, faults: ConfigFault[]): PartnerSettings['sandbox'] {
  const names = ['SANDBOX_POOL_ADDRESS', 'SANDBOX_BRIDGE_ADDRESS'] as const
  const [poolText = '', bridgeText = ''] = names.map((name) => env[name] ?? '')
  if (poolText === '' && bridgeText === '') return undefined
  const [pool, bridge] = [parseAddress(poolText), parseAddress(bridgeText)]
  for (const [name, address] of [[names[0], pool] as const, [names[1], bridge] as const])
    if (address === undefined)
      faults.push({ name, fault: 'is not an address', how: "set it to the contract's address, or leave both out" })
  return pool === undefined || bridge === undefined ? undefined : { pool, bridge }
}

function readKeyed(
  env: Env,
  faults: ConfigFault[],
  { name, baseUrl }: { readonly name: string; readonly baseUrl: string },
): KeyedApi | undefined {
  const [keyName, urlName] = [`${name}_API_KEY`, `${name}_API_URL`]
  const apiKey = env[keyName] ?? ''
  const url = readUrl(env, faults, { name: urlName, baseUrl })
  if (apiKey === '') {
    if ((env[urlName] ?? '') !== '') faults.push(withoutKey(urlName, keyName))
    return undefined
  }
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    faults.push({
      name: keyName,
      fault: 'is not usable',
      how: 'set it to the key as the partner issued it, without spaces',
    })
  return { apiKey, baseUrl: url }
}

/** Reads a URL, without a trailing slash. */
function readUrl(
  env: Env,
  faults: ConfigFault[],
  { name, baseUrl }: { readonly name: string; readonly baseUrl: string },
): string {
  const url = env[name] || baseUrl
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    faults.push({ name, fault: 'is not usable', how: `set it to an address, or leave it out for ${baseUrl}` })
  return url.replace(/\/+$/, '')
}

/** A PEM in one variable: its line feeds may be written as `\n`. */
function readPublicKey(env: Env, faults: ConfigFault[]): string | undefined {
  const name = 'BRIDGE_WEBHOOK_PUBLIC_KEY'
  const value = env[name] ?? ''
  if (value === '') return undefined
  const pem = value.replaceAll('\\n', '\n')
  if (isRsaKey(pem)) return pem
  faults.push({ name, fault: 'is not usable', how: 'set it to the PEM that Bridge shows for the webhook (RSA)' })
  return undefined
}

function isRsaKey(pem: string): boolean {
  try {
    return createPublicKey(pem).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

function withoutKey(name: string, keyName: string): ConfigFault {
  return { name, fault: `is set, and ${keyName} is not`, how: `set ${keyName} too, or leave both out` }
}
