import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import type { Deps } from '../ctx.ts'
import { failPlatform, Problem } from '../errors.ts'
import type { RequestId } from '../ids.ts'
import { Live } from '../live.ts'
import type { Guest, GuestRequest, Operation } from '../operation.ts'
import { Pour } from '../pour.ts'
import { unstorableTexts } from '../wire.ts'
import { type Identity, unauthorized } from './authenticate.ts'
import {
  callerOf,
  callOperation,
  makeCtx,
  newRequestId,
  problemAnswer,
  type RawAnswer,
  withRefusalMembers,
} from './call.ts'
import { refuseUnread } from './client-errors.ts'
import { crossOriginHeaders, crossOriginMethods, preflightAnswer } from './cross-origin.ts'
import { type Admission, createLimiter, type RateLimit, rateLimitHeaders } from './limits.ts'
import { OpenLines } from './line.ts'
import { pourInto } from './pouring.ts'
import { limitBodySilence, limitBodyTime } from './slow-body.ts'

/** Bytes of a JSON request body. */
export const bodyBytesMax = 1_048_576
const bodyMsMax = 60_000
/** Of any request, uploads of large files over slow lines among them. */
const requestMsMax = 12 * 3_600_000

/** Connections that the system keeps until they are accepted. Of those beyond it the handshake is dropped and the caller waits, or is reset. */
const waitingConnectionsMax = 4_096

/** An address that needs no key: health, documents, problem pages, and deliveries that carry a signature of their own. */
export interface PublicPage {
  readonly path: string
  /** GET when left out. */
  readonly method?: 'GET' | 'POST'
  readonly answer: (params: Readonly<Record<string, string>>, request: PageRequest) => RawAnswer | Promise<RawAnswer>
  /** Whether pages of any origin may read it. */
  readonly crossOrigin?: true
}

/** What a page is given of a request: nothing of it is checked. */
export interface PageRequest {
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Byte for byte as it came. */
  readonly body: Uint8Array
}

export interface HttpOptions {
  readonly deps: Deps
  readonly operations: readonly Operation[]
  readonly pages: readonly PublicPage[]
  readonly authenticate: (authorization: string | undefined) => Promise<Identity>
  readonly keyLimit: RateLimit
  readonly addressLimit: RateLimit
  /** Whether X-Forwarded-For names the caller (behind a proxy of our own). */
  readonly trustProxy: boolean
  /**
   * Milliseconds for a body that is read whole to arrive, and between two pieces of one that is read as it comes; a minute when
   * left out.
   */
  readonly bodyMsMax?: number
}

export interface HttpServer {
  listen(port: number, host: string): Promise<{ port: number }>
  /** Takes no new connections, lets every request under way finish, then resolves. */
  close(): Promise<void>
}

/** The HTTP server. The only file that knows which library serves it (docs/decisions/0002). */
export function createHttpServer(options: HttpOptions): HttpServer {
  const admit = createAdmission(options)
  const turnAway = (request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply =>
    refuse(options, request, reply, counted(admit, request, reply, error))
  const app = fastify({
    bodyLimit: bodyBytesMax,
    trustProxy: options.trustProxy,
    logger: false,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    requestTimeout: requestMsMax,
    keepAliveTimeout: 72_000,
    exposeHeadRoutes: false,
    genReqId: () => newRequestId(options.deps),
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: false },
    frameworkErrors: (error, request, reply) => {
      void turnAway(request as unknown as FastifyRequest, reply as unknown as FastifyReply, error)
    },
    clientErrorHandler: (error, socket) => refuseUnread(options.deps, error, socket as Socket),
  })
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
  limitBodies(app, options, turnAway)
  app.setErrorHandler((error, request, reply) => turnAway(request, reply, error))
  app.setNotFoundHandler((request, reply) => turnAway(request, reply, failPlatform('not-found')))
  let closing = false
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('connection', 'close')
    done(null, payload)
  })
  const lines = new OpenLines()
  for (const page of options.pages) addPage(app, page, admit)
  for (const [path, methods] of crossOriginMethods(options)) addPreflight(app, urlOf(path), methods, admit)
  const isStreamed = (operation: Operation): boolean => operation.streamsInput !== undefined
  for (const operation of options.operations.filter((one) => !isStreamed(one)))
    addOperation(app, operation, { options, admit, lines })
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    for (const operation of options.operations.filter(isStreamed))
      addOperation(scope, operation, { options, admit, lines })
  })
  return {
    async listen(port, host) {
      await app.listen({ port, host, backlog: waitingConnectionsMax })
      const address = app.server.address()
      return { port: typeof address === 'object' && address !== null ? address.port : port }
    },
    async close() {
      closing = true
      await turns(receiveTurns)
      lines.stop()
      await app.close()
    },
  }
}

function limitBodies(
  app: FastifyInstance,
  { operations, bodyMsMax: msMax = bodyMsMax }: HttpOptions,
  turnAway: (request: FastifyRequest, reply: FastifyReply, error: unknown) => FastifyReply,
): void {
  const streamed = new Set(
    operations
      .filter(({ streamsInput }) => streamsInput !== undefined)
      .map(({ method, path }) => `${method} ${urlOf(path)}`),
  )
  app.addHook('onRequest', (request, reply, done) => {
    if (streamed.has(`${request.method} ${request.routeOptions.url}`)) limitBodySilence(request.raw, msMax)
    else
      limitBodyTime(request.raw, msMax, () => {
        // What comes now is not read, so that nothing else can follow on the connection.
        reply.raw.once('finish', () => request.raw.destroy())
        if (!reply.sent) void turnAway(request, reply.header('connection', 'close'), failPlatform('request-timeout'))
        else request.raw.destroy()
      })
    done()
  })
}

function urlOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

/** Turns of the loop in which connections that wait are accepted and requests that were sent are read, so that none of them is cut. */
const receiveTurns = 3

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

interface Admit {
  key(identity: Identity, reply: FastifyReply): void
  address(request: FastifyRequest, reply: FastifyReply): void
}

function createAdmission(options: HttpOptions): Admit {
  const byKey = createLimiter(options.keyLimit, options.deps.clock)
  const byAddress = createLimiter(options.addressLimit, options.deps.clock)
  const check = (limit: RateLimit, admission: Admission, reply: FastifyReply): void => {
    reply.headers(rateLimitHeaders(limit, admission))
    if (!admission.admitted) throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: admission.resetSeconds })
  }
  return {
    key: (identity, reply) => check(options.keyLimit, byKey(identity.apiKeyId), reply),
    address: (request, reply) => check(options.addressLimit, byAddress(request.ip), reply),
  }
}

/**
 * What is turned away before anybody was counted counts for the address, and answers 429 when that had its share: whoever tries
 * addresses is no freer than whoever tries keys.
 */
function counted(admit: Admit, request: FastifyRequest, reply: FastifyReply, error: unknown): unknown {
  if (reply.hasHeader('ratelimit')) return error
  try {
    admit.address(request, reply)
    return error
  } catch (limited) {
    return limited
  }
}

/** Before anything else, so that a refusal can be read too. */
const allowCrossOrigin = {
  onRequest: async (_request: FastifyRequest, reply: FastifyReply): Promise<void> =>
    void reply.headers(crossOriginHeaders),
}

function addPreflight(app: FastifyInstance, url: string, methods: readonly string[], admit: Admit): void {
  app.route({
    method: 'OPTIONS',
    url,
    ...allowCrossOrigin,
    handler: (request, reply) => {
      admit.address(request, reply)
      return send(request, reply, preflightAnswer(methods))
    },
  })
}

function addPage(app: FastifyInstance, page: PublicPage, admit: Admit): void {
  app.route({
    method: page.method ?? 'GET',
    url: page.path,
    bodyLimit: bodyBytesMax,
    ...(page.crossOrigin === true && allowCrossOrigin),
    handler: async (request, reply) => {
      if (page.path !== '/healthz' && page.path !== '/readyz') admit.address(request, reply)
      const { headers, body } = rawRequest(request)
      return send(request, reply, await page.answer(request.params as Record<string, string>, { headers, body }))
    },
  })
}

function addOperation(app: FastifyInstance, operation: Operation, door: Door): void {
  const { deps } = door.options
  app.route({
    method: operation.method,
    url: urlOf(operation.path),
    bodyLimit: operation.bodyBytesMax ?? bodyBytesMax,
    ...(operation.guests !== undefined && allowCrossOrigin),
    handler: async (request, reply) => {
      const stopTimer = deps.metrics.requestSeconds.startTimer({ operation: operation.id })
      const caller = await identify(operation, request, reply, door)
      const ctx = makeCtx(deps, caller, request.id as RequestId)
      const asked = rawRequest(request)
      const answer = withRefusalMembers(operation, asked, await callOperation(ctx, operation, asked))
      stopTimer()
      deps.metrics.requests.inc({ operation: operation.id, status: String(answer.status) })
      if (deps.log.isLevelEnabled('debug'))
        deps.log.debug({ requestId: request.id, operation: operation.id, status: answer.status }, 'answered')
      if (answer.body instanceof Live) return hold(request, reply, { ...answer, body: answer.body }, door.lines)
      if (answer.body instanceof Pour) return pour(request, reply, { ...answer, body: answer.body }, door)
      return send(request, reply, answer)
    },
  })
}

interface Door {
  readonly options: HttpOptions
  readonly admit: Admit
  readonly lines: OpenLines
}

/** Who calls: a guest where the operation takes guests and one shows himself, otherwise whoever's key it is. */
async function identify(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  { options, admit }: Door,
): Promise<Guest> {
  try {
    const shown = guestRequest(request)
    const isReadable = unstorableTexts([shown.params, shown.query]).length === 0
    const guest = isReadable ? await operation.guests?.(options.deps, shown) : undefined
    if (guest !== undefined) {
      admit.address(request, reply)
      return guest
    }
    const identity = await options.authenticate(request.headers.authorization)
    admit.key(identity, reply)
    refuseOtherOrganisation(operation, request, identity)
    return callerOf(identity)
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'rate-limit-exceeded') admit.address(request, reply)
    throw error
  }
}

function guestRequest(request: FastifyRequest): GuestRequest {
  return {
    params: request.params as Record<string, string>,
    query: request.query as Record<string, unknown>,
    headers: request.headers as Record<string, string | undefined>,
  }
}

function refuseOtherOrganisation(operation: Operation, request: FastifyRequest, identity: Identity): void {
  if (operation.organisationInPath !== true) return
  const { orgId } = request.params as { orgId?: string }
  if (orgId !== identity.organisationId) throw unauthorized('wrong organisation')
}

function rawRequest(request: FastifyRequest): Parameters<typeof callOperation>[2] {
  return {
    method: request.method,
    url: request.url,
    params: request.params,
    query: request.query,
    headers: request.headers as Record<string, string | undefined>,
    body: Buffer.isBuffer(request.body) ? request.body : new Uint8Array(),
    stream: request.body instanceof Readable ? request.body : undefined,
  }
}

function send(request: FastifyRequest, reply: FastifyReply, answer: RawAnswer): FastifyReply {
  setHead(request, reply, answer)
  if (answer.body instanceof Live) throw new Error('only an operation keeps its answer open')
  if (answer.body instanceof Readable) return reply.send(answer.body)
  return reply.send(answer.body.length === 0 ? undefined : answer.body)
}

function setHead(request: FastifyRequest, reply: FastifyReply, { status, headers }: RawAnswer): void {
  reply.code(status).headers({ ...headers, 'x-request-id': request.id, 'x-content-type-options': 'nosniff' })
  if (headers['cache-control'] === undefined) reply.header('cache-control', 'no-store')
}

/**
 * Sends the head and hands the line over, past the library, which would keep a node stream and its listeners for each. The
 * connection ends with the answer, so that a server that stops waits for nobody.
 */
function hold(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: RawAnswer & { readonly body: Live },
  lines: OpenLines,
): FastifyReply {
  setHead(request, reply, answer)
  reply.header('connection', 'close')
  takeOver(reply, answer)
  const line = lines.open(reply.raw, answer.body.closed)
  answer.body.open(line)
  if (lines.isStopping) line.end()
  // Whoever left before the line was there is not announced again.
  if (reply.raw.destroyed) line.cut()
  return reply
}

/** Past the library too, which would make a memory of its own for each chunk. */
function pour(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: RawAnswer & { readonly body: Pour },
  { options: { deps }, lines }: Door,
): FastifyReply {
  setHead(request, reply, answer)
  if (lines.isStopping) reply.header('connection', 'close')
  takeOver(reply, answer)
  // A server that began to stop meanwhile waits for no other request on the connection.
  reply.raw.once('finish', () => {
    if (lines.isStopping) request.raw.socket.end()
  })
  void pourInto(reply.raw, answer.body, (err) => deps.log.error({ err, requestId: request.id }, 'an answer broke off'))
  return reply
}

function takeOver(reply: FastifyReply, { status }: RawAnswer): void {
  reply.hijack()
  reply.raw.writeHead(
    status,
    Object.entries(reply.getHeaders()).flatMap(([name, value]) => (value === undefined ? [] : [name, value])),
  )
}

const libraryFaults: Readonly<Record<string, Problem>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: failPlatform('payload-too-large'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: failPlatform('bad-request'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: failPlatform('unsupported-media-type'),
  FST_ERR_BAD_URL: failPlatform('not-found'),
  FST_ERR_MAX_PARAM_LENGTH: failPlatform('not-found'),
  FST_ERR_ASYNC_CONSTRAINT: failPlatform('bad-request'),
}

function refuse(
  { deps, operations }: HttpOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): FastifyReply {
  const code = (error as { code?: unknown } | null)?.code
  const known = typeof code === 'string' ? libraryFaults[code] : undefined
  const clientFault =
    (error as { statusCode?: unknown } | null)?.statusCode === 400 ? failPlatform('bad-request', {}, error) : undefined
  const answer = problemAnswer({ ...deps, requestId: request.id as RequestId }, known ?? clientFault ?? error)
  const operation = operations.find(
    ({ method, path }) => method === request.method && urlOf(path) === request.routeOptions?.url,
  )
  const shaped = operation === undefined ? answer : withRefusalMembers(operation, rawRequest(request), answer)
  return send(request, reply, shaped)
}
