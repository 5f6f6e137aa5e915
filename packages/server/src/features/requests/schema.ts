import { z } from 'zod'
import { id } from '../../platform/ids.ts'
import { named } from '../../platform/named.ts'
import { Instant, PageQuery, periodFilters, text } from '../../platform/wire.ts'

const Method = z.enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])

export const LoggedRequest = z.strictObject({
  id: id('req').meta({ description: 'The `X-Request-Id` of the response.' }),
  method: Method.describe('HTTP method.'),
  route: z.string().meta({ description: 'The path as this document declares it, without its values.' }),
  status: z.int().describe('HTTP status of the response.'),
  durationMs: z.int().meta({
    description: 'From the arrival of the request to the beginning of its response, in milliseconds.',
  }),
  apiKeyId: id('key').nullable().meta({ description: 'Null where a person who is signed in made the request.' }),
  accountId: id('acc').nullable().meta({ description: 'That person.' }),
  code: z.string().nullable().meta({ description: "The code of the response's problem record; null without one." }),
  createdAt: Instant.meta({ description: 'When the request arrived.' }),
})
export type LoggedRequest = z.input<typeof LoggedRequest>

export const RequestParams = z.strictObject({ requestId: id('req') })

export const RequestQuery = PageQuery.extend({
  method: Method.optional().describe('Only this HTTP method.'),
  route: text(200, 1).optional().meta({ description: 'Such as `/payments/{id}`.' }),
  status: z
    .string()
    .regex(/^[1-5](\d\d|xx)$/, 'must be a status such as 404, or a class such as 4xx')
    .optional()
    .meta({ description: 'A status, or a class of them such as `4xx`.' }),
  apiKeyId: id('key').optional().describe('Only requests with this API key.'),
  ...periodFilters,
})
export type RequestQuery = z.output<typeof RequestQuery>

named({ LoggedRequest })
