import { encodeJsonBase64, type JsonObject } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import { readDeclaration } from './declaration.ts'
import { upsertResource } from './discovery-store.ts'
import type { FacilitatorBody } from './schema.ts'

/** Resources that one organisation may have listed per environment. */
const resourcesMax = 1_000

/**
 * Lists what a paid request declares of its resource (x402 extension bazaar), and answers the header that tells the resource server
 * how that went. What is declared is the payer's copy of a challenge, so a fault of it, or of the list, is never a fault of the settlement.
 */
export async function declareResource(ctx: Ctx, body: FacilitatorBody): Promise<Record<string, string>> {
  const declared = readDeclaration(body)
  if (declared === undefined) return {}
  if ('rejectedReason' in declared) return answerHeader({ status: 'rejected', rejectedReason: declared.rejectedReason })
  try {
    const isListed = await upsertResource(ctx.db, ctx.tenant, { ...declared, now: ctx.clock.now(), resourcesMax })
    if (isListed) return answerHeader({ status: 'success' })
    return answerHeader({ status: 'rejected', rejectedReason: 'too_many_resources' })
  } catch (error) {
    ctx.log.warn({ err: error, requestId: ctx.requestId }, 'a paid resource could not be listed')
    return {}
  }
}

/** The `EXTENSION-RESPONSES` header (x402 specification v2, transport HTTP): base64 of JSON by extension. */
function answerHeader(bazaar: JsonObject): Record<string, string> {
  return { 'extension-responses': encodeJsonBase64({ bazaar }) }
}
