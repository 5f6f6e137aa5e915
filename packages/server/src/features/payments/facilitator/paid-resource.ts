import type { JsonObject } from '@purser/protocol'
import { z } from 'zod'
import { isWebUrl, parseUrl } from '../../../platform/parse-url.ts'
import { text } from '../../../platform/wire.ts'
import { routeBytesMax, routeOf } from '../new-payment.ts'
import type { FacilitatorBody } from './schema.ts'

/** The columns of a payment that describe the purchased resource. */
export interface PaidResource {
  readonly resource: string | null
  readonly route: string | null
  readonly description: string | null
}

const Url = text(2_048, 1)
const Description = text(1_024, 1)

/**
 * Returns the resource that the request names: in version 2 from the payment, where the payer copied it from the challenge, in
 * version 1 from the requirements. It is stored for the log only: a value that is not a URL or is too long is left out and
 * refuses no payment.
 */
export function resourceOf(body: FacilitatorBody): PaidResource {
  const { url, description } = describedResource(body)
  const resource = Url.safeParse(url).data ?? null
  const isWeb = resource !== null && isWebUrl(resource)
  return {
    resource,
    route: isWeb ? routeOf(resource) : null,
    description: Description.safeParse(description).data ?? null,
  }
}

/** Returns the members of the resource as sent, for either version. */
function describedResource(body: FacilitatorBody): JsonObject {
  const { paymentPayload, paymentRequirements } = body
  if (paymentPayload.x402Version !== 1) return objectOf(paymentPayload.resource)
  const { resource: url, description, mimeType } = paymentRequirements
  return { url, description, mimeType }
}

/** Returns the payment's extensions as sent; empty if there are none. */
export function extensionsOf(body: FacilitatorBody): JsonObject {
  return objectOf(body.paymentPayload.extensions)
}

/** Returns the value if it is an object, otherwise an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {}
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** A resource of the discovery listing. */
export interface Declaration {
  /** Origin and path without the query, which may contain a caller's private input. */
  readonly resource: string
  readonly type: 'http' | 'mcp'
  /** HTTP method or tool name: one address may sell several operations. */
  readonly operation: string
  readonly x402Version: 1 | 2
  readonly accepts: JsonObject
  readonly details: JsonObject
}

const detailsCharactersMax = 16_384
const acceptsCharactersMax = 4_096
const routeTemplate = /^\/[A-Za-z0-9_/:.\-~]{0,500}$/

const HttpInput = z.looseObject({
  type: z.literal('http'),
  method: z.enum(['GET', 'HEAD', 'DELETE', 'POST', 'PUT', 'PATCH']),
  bodyType: z.enum(['json', 'form-data', 'text']).optional(),
})
const ToolName = text(128, 1).optional()
/** The specification calls the name of a tool `tool`, the official packages call it `toolName`. */
const McpInput = z.looseObject({
  type: z.literal('mcp'),
  toolName: ToolName,
  tool: ToolName,
  inputSchema: z.record(z.string(), z.unknown()),
  transport: z.enum(['streamable-http', 'sse']).optional(),
})
const Info = z.looseObject({ input: z.discriminatedUnion('type', [HttpInput, McpInput]) })
type Info = z.output<typeof Info>

/**
 * Reads the resource that a payment declares; undefined if it declares none. The schema inside a declaration is not executed: it
 * is untrusted, and compiling it could be made arbitrarily expensive. Only the protocol's own shape is checked.
 * Source: x402 extension bazaar, @x402/extensions 2.27.0 `bazaar/facilitator.ts`; version 1 `outputSchema`.
 */
export function readDeclaration(body: FacilitatorBody): Declaration | { readonly rejectedReason: string } | undefined {
  const extension = declaredExtension(body)
  if (extension === undefined) return undefined
  const info = Info.safeParse(extension.info).data
  const operation = info && operationOf(info)
  if (info === undefined || operation === undefined) return { rejectedReason: 'invalid_discovery_info' }
  const resource = listedUrl(describedResource(body).url, extension)
  if (resource === undefined) return { rejectedReason: 'invalid_resource_url' }
  const { type } = info.input
  const declaration = { resource, type, operation, ...offerOf(body), details: detailsOf(body, extension) }
  const isTooLarge =
    JSON.stringify(declaration.details).length > detailsCharactersMax ||
    JSON.stringify(declaration.accepts).length > acceptsCharactersMax
  return isTooLarge ? { rejectedReason: 'declaration_too_large' } : declaration
}

function declaredExtension(body: FacilitatorBody): JsonObject | undefined {
  if (body.paymentPayload.x402Version !== 1) {
    const { bazaar } = extensionsOf(body)
    return bazaar === undefined || bazaar === null ? undefined : objectOf(bazaar)
  }
  const { input, output } = objectOf(body.paymentRequirements.outputSchema)
  const declared = objectOf(input)
  if (declared.type !== 'http' || declared.discoverable === false || typeof declared.method !== 'string')
    return undefined
  const { discoverable: _, ...rest } = declared
  const info = {
    input: { ...rest, method: declared.method.toUpperCase() },
    ...(output === undefined ? {} : { output }),
  }
  return { info }
}

function operationOf({ input }: Info): string | undefined {
  return input.type === 'http' ? input.method : (input.toolName ?? input.tool)
}

function offerOf({
  paymentPayload,
  paymentRequirements,
}: FacilitatorBody): Pick<Declaration, 'x402Version' | 'accepts'> {
  const { outputSchema: _, ...accepts } = paymentRequirements
  return { x402Version: paymentPayload.x402Version === 1 ? 1 : 2, accepts }
}

/** Returns the address to list: origin and path, or the template of a route with parameters, which the payer may have changed. */
function listedUrl(url: unknown, extension: JsonObject): string | undefined {
  const address = typeof url === 'string' && isWebUrl(url) ? parseUrl(url) : undefined
  if (address === undefined) return undefined
  const { origin, pathname } = address
  const template = extension.routeTemplate
  const isTemplate =
    typeof template === 'string' &&
    routeTemplate.test(template) &&
    !template.includes('..') &&
    !template.includes('://')
  const listed = `${origin}${isTemplate ? template : pathname}`
  return Buffer.byteLength(listed) > routeBytesMax ? undefined : listed
}

const Words = text(1_024, 1)
const Label = z.string().regex(/^[\x20-\x7e]{1,32}$/)
const IconUrl = text(2_048, 1).refine(isPublicUrl)

/** Returns what a listing shows beside the price. Invalid parts are left out, as the extension's rules for services require. */
function detailsOf(body: FacilitatorBody, extension: JsonObject): JsonObject {
  const described = describedResource(body)
  const tags = Array.isArray(described.tags) ? described.tags.flatMap((tag) => Label.safeParse(tag).data ?? []) : []
  const parts = {
    description: Words.safeParse(described.description).data,
    mimeType: Words.safeParse(described.mimeType).data,
    serviceName: Label.safeParse(described.serviceName).data,
    tags: tags.length === 0 ? undefined : [...new Set(tags)].slice(0, 5),
    iconUrl: IconUrl.safeParse(described.iconUrl).data,
    extensions: { bazaar: extension },
  }
  return Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined))
}

/** Whether an icon's URL is public. Readers of the list fetch it, so it must not point into a reader's own network. */
function isPublicUrl(value: string): boolean {
  const url = parseUrl(value)
  if (url === undefined) return false
  const { protocol, hostname, username, password } = url
  const isNamed = /^[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*$/.test(hostname) && !hostname.endsWith('.localdomain')
  return /^https?:$/.test(protocol) && username === '' && password === '' && isNamed
}
