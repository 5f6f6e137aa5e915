import { encodeJsonBase64, type JsonObject } from '@purser/protocol'
import type { Ctx } from '../../../platform/ctx.ts'
import { readDeclaration } from './declaration.ts'
import { upsertResource } from './discovery-store.ts'
import type { FacilitatorBody } from './schema.ts'

/** Most resources that one organization may list per environment. */
const resourcesMax = 1_000

/**
 * Lists the resource that a paid request declares (x402 extension bazaar), and returns the header that reports the result to the
 * resource server. The declaration is the payer's copy of a challenge, so an invalid declaration or a failure of the list never
 * fails the settlement.
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

/** Builds the `EXTENSION-RESPONSES` header (x402 specification v2, transport HTTP): base64 of JSON by extension. */
function answerHeader(bazaar: JsonObject): Record<string, string> {
  return { 'extension-responses': encodeJsonBase64({ bazaar }) }
}
