import type { Purser } from '@purser/sdk'
import {
  type Content,
  documentContent,
  fetchKeys,
  itemProof,
  type Jwks,
  readSealProof,
  type SealedItem,
  type SealProof,
  verifyItem,
  verifySeal,
} from '@purser/sdk/seal'

export interface Check {
  readonly key: string
  readonly title: string
  readonly state: 'running' | 'passed' | 'failed'
  readonly detail?: string | undefined
}

export interface Verified {
  readonly ok: boolean
  /** The key that signed, where it is one of the service's. */
  readonly kid: string | undefined
}

/**
 * Verifies a sealed vault in the browser: the signature and the manifest, then the content of each item, read again. The checks are
 * reported as they begin and end. Throws where the proof, the keys or an item cannot be read.
 */
export async function verifyVault(
  purser: Purser,
  vaultId: string,
  report: (checks: readonly Check[]) => void,
): Promise<Verified> {
  const checks: Check[] = []
  const begin = (check: Check) => report([...checks, check])
  const end = (check: Check) => {
    checks.push(check)
    report([...checks])
  }
  const seal = {
    key: 'seal',
    title: 'The signature of the service covers this vault, this time and this list of items.',
  }
  begin({ ...seal, state: 'running' })
  const [proof, keys] = await Promise.all([purser.vaults.proof(vaultId), fetchKeys(location.origin)])
  const verdict = await verifySeal(proof, { keys })
  const read = readSealProof(proof)
  if (!verdict.ok || 'fault' in read || read.value.manifest.vaultId !== vaultId) {
    end({ ...seal, state: 'failed', detail: verdict.ok ? 'The proof is about another vault.' : verdict.detail })
    return { ok: false, kid: undefined }
  }
  end({ ...seal, state: 'passed' })
  for (const item of read.value.manifest.items) {
    const check = { key: item.id, title: item.name }
    begin({ ...check, state: 'running' })
    end({ ...check, ...(await checkItem({ purser, proof: read.value, keys }, item)) })
  }
  return { ok: checks.every(({ state }) => state === 'passed'), kid: verdict.kid }
}

interface Evidence {
  readonly purser: Purser
  readonly proof: SealProof
  readonly keys: Jwks
}

async function checkItem({ purser, proof, keys }: Evidence, item: SealedItem): Promise<Omit<Check, 'key' | 'title'>> {
  const content = await contentOf(purser, proof.manifest.vaultId, item)
  const verdict = await verifyItem(itemProof(proof, item.id), { keys, content })
  if (!verdict.ok) return { state: 'failed', detail: verdict.detail }
  return { state: 'passed', detail: `${item.size.toLocaleString('en-US')} bytes, SHA-256 ${item.sha256.slice(0, 16)}…` }
}

/** The content of an item as the service serves it now. */
async function contentOf(purser: Purser, vaultId: string, { kind, id }: SealedItem): Promise<Content> {
  if (kind === 'file') {
    const { body } = await purser.vaults.files.get(vaultId, id)
    return body ?? new Uint8Array()
  }
  const { data } = await purser.vaults.documents.get(vaultId, id)
  return documentContent(JSON.parse(JSON.stringify(data ?? {})))
}
