import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import type { Clock } from '../platform/clock.ts'
import type { Outbound } from '../platform/outbound.ts'

export interface GcpKmsSource {
  /** `projects/…/locations/…/keyRings/…/cryptoKeys/…` */
  readonly key: string
  readonly credentialsFile?: string | undefined
  readonly endpoint?: string | undefined
  readonly metadataUrl?: string | undefined
}

const metadataServer = 'http://metadata.google.internal'
const tokenPath = '/computeMetadata/v1/instance/service-accounts/default/token'
const limits = { timeoutMs: 2_000, bytesMax: 65_536 }
const lifeSeconds = 3_600
/** A token is renewed this long before it expires, to allow for clock differences and requests in progress. */
const marginSeconds = 300

const Credentials = z.object({
  type: z.literal('service_account'),
  private_key_id: z.string(),
  private_key: z.string(),
  client_email: z.string(),
})
const MetadataToken = z.object({ access_token: z.string(), expires_in: z.number() })

interface Token {
  readonly text: string
  readonly endsAtMs: number
}

/**
 * Bearer tokens for one Google API: a JWT that the service account signs itself, or a token from the machine's metadata server. Sources: AIP-4111
 * (self-signed JWT), "Authenticate workloads to Google Cloud APIs" (metadata server).
 */
export function createGcpTokens(
  source: Pick<GcpKmsSource, 'credentialsFile' | 'metadataUrl'>,
  own: { readonly outbound: Pick<Outbound, 'exchange'>; readonly clock: Clock; readonly audience: string },
): { token(): Promise<string> } {
  const account = source.credentialsFile === undefined ? undefined : readAccount(source.credentialsFile)
  let token: Token | undefined
  return {
    async token() {
      const nowMs = own.clock.now().getTime()
      if (token === undefined || token.endsAtMs - marginSeconds * 1_000 <= nowMs)
        token =
          account === undefined
            ? await fetchMetadataToken(source.metadataUrl ?? metadataServer, own.outbound, nowMs)
            : signToken(account, own.audience, nowMs)
      return token.text
    },
  }
}

interface Account {
  readonly email: string
  readonly kid: string
  readonly key: KeyObject
}

function readAccount(file: string): Account {
  const read = Credentials.safeParse(JSON.parse(readFileSync(file, 'utf8')))
  // The parser's message is omitted, because it may contain the file's content.
  if (!read.success) throw new Error(`${file} is not the key file of a Google service account`)
  const { client_email: email, private_key_id: kid, private_key: pem } = read.data
  return { email, kid, key: createPrivateKey(pem) }
}

function signToken({ email, kid, key }: Account, audience: string, nowMs: number): Token {
  const issued = Math.floor(nowMs / 1_000)
  const header = { alg: 'RS256', typ: 'JWT', kid }
  const claims = { iss: email, sub: email, aud: audience, iat: issued, exp: issued + lifeSeconds }
  const input = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  const signature = sign('sha256', Buffer.from(input), key).toString('base64url')
  return { text: `${input}.${signature}`, endsAtMs: (issued + lifeSeconds) * 1_000 }
}

async function fetchMetadataToken(url: string, outbound: Pick<Outbound, 'exchange'>, nowMs: number): Promise<Token> {
  const headers = { 'metadata-flavor': 'Google' }
  const { status, json } = await outbound.exchange({ method: 'GET', url: `${url}${tokenPath}`, headers }, limits)
  if (status !== 200) throw new Error(`the metadata server returned no token: status ${status}`)
  const { access_token: text, expires_in: seconds } = MetadataToken.parse(json)
  return { text, endsAtMs: nowMs + seconds * 1_000 }
}
