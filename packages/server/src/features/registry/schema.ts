import { routePatternOf } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { parseUrl } from '../../platform/parse-url.ts'
import { CreatedAt, Instant, PageQuery, text } from '../../platform/wire.ts'

/** Most parameters of one kind that a route keeps. */
export const paramsMax = 64

/** A header, query parameter or body member of a route. */
export const RouteParam = z.strictObject({
  name: text(128, 1).describe('Name of the parameter.'),
  type: text(32, 1).meta({ example: 'string' }).describe('Its type, such as `string`.'),
  required: z.boolean().describe('Whether a request must have it.'),
  example: z
    .union([text(512), z.number(), z.boolean()])
    .optional()
    .describe('An example value.'),
})
export type RouteParam = z.output<typeof RouteParam>

/**
 * A parameter as callers describe it: only the name is required, null means absent, and `value`, where a client library sends
 * what it observed, is an example.
 */
const ObservedParam = z
  .strictObject({
    name: RouteParam.shape.name.describe('Name of the parameter.'),
    type: RouteParam.shape.type.nullish().describe('Its type. Default `string`.'),
    required: z.boolean().nullish().describe('Whether a request must have it. Default false.'),
    example: RouteParam.shape.example.unwrap().nullish().describe('An example value.'),
    value: RouteParam.shape.example
      .unwrap()
      .nullish()
      .describe('A value that was observed; used as the example if there is none.'),
  })
  .transform(({ name, type, required, example, value }): RouteParam => {
    const shown = example ?? value ?? undefined
    return { name, type: type ?? 'string', required: required ?? false, ...(shown !== undefined && { example: shown }) }
  })

const ObservedParams = z
  .array(ObservedParam)
  .max(paramsMax)
  .nullish()
  .transform((params) => params ?? [])

/** A host name with an optional port, as WHATWG URL writes it: lower case, punycode, without the port of https. */
const Host = text(260, 1)
  .transform((written, ctx) => {
    const host = hostOf(written)
    if (host !== undefined) return host
    ctx.addIssue({ code: 'custom', message: 'must be a host name, with a port or without' })
    return z.NEVER
  })
  .meta({ example: 'api.example.com' })

function hostOf(written: string): string | undefined {
  return /[\s/?#@\\]/.test(written) ? undefined : parseUrl(`https://${written}/`)?.host
}

/** Decimal US dollars as text, with as many digits as a price may have. */
const Dollars = z
  .string()
  .regex(/^\d{1,60}(\.\d{1,60})?$/, 'must be a decimal amount such as "0.01"')
  .meta({ example: '0.01' })

const Protocol = z.enum(['x402', 'mpp'])

/** Most bytes of a route's pattern. An index contains it, and PostgreSQL refuses index rows of more than 2,704 bytes. */
const routeBytesMax = 2_048
/** Most parameters in a route's pattern. */
const routeParamsMax = 32
const tooLongRoute = `must have at most ${routeBytesMax} bytes and ${routeParamsMax} parameters, with {id} for identifiers`

/** Judges the pattern that is stored, which may be longer than the text that was sent. */
function isShortRoute(written: string): boolean {
  if (written.length > routeBytesMax) return false
  const pattern = routePatternOf(written)
  return Buffer.byteLength(pattern) <= routeBytesMax && pattern.split('{').length <= routeParamsMax + 1
}

export const RouteReport = z.strictObject({
  host: Host.describe('Host of the route, with a port other than that of https.'),
  method: z
    .string()
    .regex(/^[A-Za-z][A-Za-z-]{0,31}$/, 'must be an HTTP method')
    .transform((method) => method.toUpperCase())
    .meta({ example: 'GET' })
    .describe('HTTP method of the route.'),
  routePattern: text(routeBytesMax, 1).regex(/^\//, 'must begin with /').refine(isShortRoute, tooLongRoute).meta({
    description: 'A router’s pattern or a path. What looks like an identifier becomes {id}; the query is left out.',
    example: '/users/:id',
  }),
  headers: ObservedParams.describe('Header fields that the route reads.'),
  queryParams: ObservedParams.describe('Query parameters of the route.'),
  bodyParams: ObservedParams.describe('Members of the body of the route.'),
  bodyContentType: text(255, 1)
    .nullish()
    .transform((type) => type ?? undefined)
    .describe('Media type of the request body.'),
  amount: Dollars.describe('Price in US dollars.'),
  protocol: Protocol.describe('Protocol in which it was paid.'),
  paymentLogId: id('plog')
    .nullish()
    .transform((paymentLogId) => paymentLogId ?? undefined)
    .describe('The payment log record of the payment that was observed.'),
})
export type RouteReport = z.output<typeof RouteReport>

export const SnapshotAccepted = z.strictObject({ accepted: z.literal(true).describe('Always true.') })

/** A paid route as it was last reported. */
export const RegistryRoute = z.strictObject({
  id: id('reg'),
  host: z.string().describe('Host of the route.'),
  method: z.string().describe('HTTP method of the route.'),
  routePattern: z.string().describe('Path of the route, with `{id}` for identifiers.'),
  headers: z.array(RouteParam).describe('Header fields that the route reads.'),
  queryParams: z.array(RouteParam).describe('Query parameters of the route.'),
  bodyParams: z.array(RouteParam).describe('Members of the body of the route.'),
  bodyContentType: z.string().nullable().describe('Media type of the request body; null if none was reported.'),
  amount: z.string().meta({ description: 'US dollars, as last seen.' }),
  protocol: Protocol.meta({ description: 'As last seen.' }),
  protocols: z.array(Protocol).meta({ description: 'Every one that was ever seen.' }),
  paymentLogId: id('plog').nullable().describe('The payment log record of the last report; null if it named none.'),
  isPublic: z.boolean().meta({ description: 'Whether other organisations find it by the facilitator’s discovery.' }),
  snapshotCount: z.int().describe('How often the route was reported.'),
  createdAt: CreatedAt,
  lastSeenAt: Instant.describe('Up to an hour before its last report.'),
})
export type RegistryRoute = z.input<typeof RegistryRoute>

export const RouteChange = z.strictObject({
  isPublic: z.boolean().describe('Whether other organisations find the route.'),
})

export const RouteQuery = PageQuery.extend({
  host: Host.optional().describe('Only this host.'),
  protocol: Protocol.optional().meta({ description: 'Routes that were ever paid for in this protocol.' }),
  maxAmount: Dollars.optional().describe('Only up to this price, in US dollars.'),
  q: text(200, 1).optional().meta({ description: 'Part of “METHOD host/route”, in any case.' }),
})
export type RouteQuery = z.output<typeof RouteQuery>
export type RouteFilters = Omit<RouteQuery, 'limit' | 'cursor'>

export const RouteParamsInPath = z.strictObject({ id: id('reg') })

named({ RouteParam, ObservedParam, RouteSnapshot: RouteReport, SnapshotAccepted, RegistryRoute, RouteChange })
