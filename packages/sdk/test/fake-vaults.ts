import type { Doing } from './fake-purser.ts'

type Fake = (path: string, body: Record<string, unknown>) => Doing | undefined

/** The id and the secret of the fake's tokens have the form of real ones. */
const sessionId = 'sess_01h455vb4pex5vsknk084sn02q'
const vaultId = 'vlt_01h455vb4pex5vsknk084sn02q'

const type = 'http://purser.test/problems/session-not-found'
const notFound = { type, title: 'Session Not Found', status: 402, detail: 'inside: session-not-found' }

/**
 * Of sessions and vaults what the middlewares see: one session, whose last token alone is good, and its vault. What is written
 * into the vault is answered as it came. Undefined for every other path.
 */
export function openFakeVaults(): Fake {
  let tokens = 0
  const tokenNow = () => `${sessionId}.${String(tokens).padStart(43, 'A')}`
  const session = () => ({
    sessionId,
    vaultId,
    expiresAt: new Date(Date.now() + 86_400_000).toISOString(),
    isExpired: false,
  })
  return (path, body) => {
    if (path === '/sessions') {
      tokens++
      return { status: tokens === 1 ? 201 : 200, body: { ...session(), sessionToken: tokenNow() } }
    }
    if (path === '/sessions/verify') {
      const isGood = tokens > 0 && body.sessionToken === tokenNow()
      return isGood ? { status: 200, body: session() } : { status: 402, body: notFound }
    }
    if (path === `/vaults/${vaultId}`)
      return { status: 200, body: { id: vaultId, documents: [], files: [], manifest: null } }
    return path.startsWith(`/vaults/${vaultId}/`) ? { status: 201, body: { id: vaultId, ...body } } : undefined
  }
}
