import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from 'fastify'
import type { Caller } from '../ctx.ts'
import { failPlatform } from '../errors.ts'
import { EventStreamResponse } from '../event-streams/response.ts'
import type { RequestId } from '../ids.ts'
import type { BoundOperation } from '../operation.ts'
import { ReusedBufferStream } from '../reused-buffer-stream.ts'
import { type BodyBudgets, createBodyBudgets } from '../share.ts'
import { type Admit, chargesOf, createAdmission, replayChargesOf } from './admission.ts'
import { identifyAgain, identifyCaller } from './admitted.ts'
import { limitBody, readBody } from './bodies.ts'
import {
  asProblem,
  callOperation,
  commonHeaders,
  makeCtx,
  newRequestId,
  problemResponse,
  type RawResponse,
  withRefusalMembers,
} from './call.ts'
import { refuseUnread, withoutLibraryFault } from './client-errors.ts'
import { beginClose, limitConnections, pageBodyMsMax, proxiesOf, reserveBody, type Trust } from './connections.ts'
import {
  allowCrossOrigin,
  crossOriginMethods,
  dashboardHeaders,
  dashboardPreflight,
  preflightResponse,
  varyOf,
} from './cross-origin.ts'
import { headFault, routedUrl } from './head-faults.ts'
import { type HttpOptions, type HttpServer, limitsDefault, noCompilers, nodeOptions } from './http-options.ts'
import { createReadingPauses } from './pause-reading.ts'
import type { PublicPage } from './public-page.ts'
import { limitRefusalRecords, type RefusalRecords } from './refusal-records.ts'
import { accessHook, type Reportable, responseBegun, tracedRequests } from './response-hooks.ts'
import { createResponseLimits, type ResponseLimits } from './response-size.ts'
import { urlOf } from './route-url.ts'
import { limitSettingChanges, type SettingChanges, settingCostOf } from './setting-changes.ts'
import { OpenSseConnections } from './sse-connection.ts'
import { takeOver, writeStream } from './write-stream.ts'

/** Most bytes of a JSON request body. */
export const bodyBytesMax = 1_048_576
/** A caller whose body took longer is looked up again: the key may have been revoked since. */
const bodyMsUnchecked = 1_000
/** Longest duration of any request, including uploads of large files over slow connections. */
const requestMsMax = 12 * 3_600_000

/** Connections that the system queues until they are accepted. Beyond that the handshake is dropped and the caller waits, or is reset. */
const waitingConnectionsMax = 4_096

export type { HttpOptions, HttpServer, ServerLimits } from './http-options.ts'
export type { PageRequest, PublicPage } from './public-page.ts'

declare module 'fastify' {
  interface FastifyRequest extends Reportable {
    /** Set once the caller of an operation is admitted. */
    caller: Caller | undefined
    /** The time at which the caller was looked up, by `performance.now()`. */
    admittedAt: number
  }
}

/** The HTTP server. The only file that depends on the HTTP library (docs/decisions/0002). */
export function createHttpServer(options: HttpOptions): HttpServer {
  const limits = { ...limitsDefault, ...options.limits }
  const admit = createAdmission(options, options.deps.clock)
  const bodies = createBodyBudgets(limits.bodiesBytesMax)
  const turnAway = (request: FastifyRequest, reply: FastifyReply, error: unknown): FastifyReply =>
    refuse(options, request, reply, counted(admit, request, reply, error))
  const app = fastify({
    bodyLimit: bodyBytesMax,
    trustProxy: proxiesOf(options.trustProxy),
    connectionTimeout: limits.silenceMsMax,
    http: nodeOptions(limits),
    logger: false,
    schemaController: { compilersFactory: noCompilers },
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    requestTimeout: requestMsMax,
    keepAliveTimeout: 72_000,
    exposeHeadRoutes: false,
    genReqId: () => newRequestId(options.deps),
    rewriteUrl: ({ url = '' }) => routedUrl(url),
    routerOptions: { maxParamLength: 512, ignoreTrailingSlash: false },
    frameworkErrors: (error, request, reply) => {
      void turnAway(request as unknown as FastifyRequest, reply as unknown as FastifyReply, error)
    },
    clientErrorHandler: (error, socket) => refuseUnread(options.deps, error, socket as Socket),
  })
  app.decorateRequest('reportResponse', undefined)
  app.decorateRequest('caller', undefined)
  app.decorateRequest('admittedAt', 0)
  const traced = tracedRequests()
  app.addHook('onRequest', traced.begin)
  app.addHook('preHandler', traced.enter)
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', readBody)
  limitBodies(app, { ...options, silenceMsMax: limits.silenceMsMax }, turnAway)
  app.setErrorHandler((error, request, reply) => turnAway(request, reply, error))
  app.setNotFoundHandler((request, reply) => turnAway(request, reply, failPlatform('not-found')))
  let closing = false
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('connection', 'close')
    done(null, payload)
  })
  allowDashboard(app, options, admit)
  // Before the body is read, which neither needs.
  app.addHook('onRequest', (request, reply, done) => {
    const fault = headFault(request.raw) ?? (request.is404 ? failPlatform('not-found') : undefined)
    if (fault === undefined) done()
    else turnAway(request, reply, fault)
  })
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  if (options.accessLog !== undefined) app.addHook('onResponse', accessHook(options.accessLog))
  const connections = new OpenSseConnections()
  const unknownPerAddressMax = options.trustProxy === false ? limits.connectionsPerAddressMax : undefined
  const trust = limitConnections(app.server, { connectionsMax: limits.connectionsMax, unknownPerAddressMax })
  const responses = createResponseLimits(limits.bodiesBytesMax)
  const [settings, refusals] = [limitSettingChanges(options.deps.clock), limitRefusalRecords(options.deps.clock)]
  const context: RouteContext = { options, admit, bodies, responses, trust, connections, settings, refusals }
  for (const page of options.pages) addPage(app, page, context)
  for (const [path, methods] of crossOriginMethods(options)) addPreflight(app, urlOf(path), methods, admit)
  const isStreamed = (operation: BoundOperation): boolean => operation.streamsInput !== undefined
  for (const operation of options.operations.filter((one) => !isStreamed(one))) addOperation(app, operation, context)
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    for (const operation of options.operations.filter(isStreamed)) addOperation(scope, operation, context)
  })
  return {
    async listen(port, host) {
      await app.listen({ port, host, backlog: waitingConnectionsMax })
      const address = app.server.address()
      return { port: typeof address === 'object' && address !== null ? address.port : port }
    },
    async close() {
      closing = true
      await beginClose(app.server)
      connections.stop()
      await app.close()
    },
  }
}

type BodyLimits = HttpOptions & { readonly silenceMsMax: number }

/** Limits how long the bodies of requests may take and how many chunks they have. */
function limitBodies(
  app: FastifyInstance,
  { operations, pages, bodyMsMax = 60_000, silenceMsMax, pauses = createReadingPauses() }: BodyLimits,
  turnAway: (request: FastifyRequest, reply: FastifyReply, error: unknown) => FastifyReply,
): void {
  const streams = operations.filter(({ streamsInput }) => streamsInput !== undefined)
  const streamed = new Set(streams.map(({ method, path }) => `${method} ${urlOf(path)}`))
  const paged = new Set(pages.map(({ method = 'GET', path }) => `${method} ${path}`))
  app.addHook('onRequest', (request, reply, done) => {
    const route = `${request.method} ${request.routeOptions.url}`
    const pauseFor = (chunks: number) => pauses(request.caller?.shareOwner, chunks)
    limitBody(request.raw, {
      response: reply.raw,
      pauseFor: streamed.has(route) ? pauseFor : undefined,
      msMax: paged.has(route) ? Math.min(bodyMsMax, pageBodyMsMax) : bodyMsMax,
      silenceMsMax,
      isAnswered: () => reply.sent,
      refuse: (problem) => void turnAway(request, reply.header('connection', 'close'), problem),
    })
    done()
  })
}

/** Counts a refusal before authentication against the address; 429 beyond its limit: guessing paths is limited like guessing keys. */
function counted(admit: Admit, request: FastifyRequest, reply: FastifyReply, error: unknown): unknown {
  if (reply.hasHeader('ratelimit')) return error
  try {
    admit.address(request.ip, reply)
    return error
  } catch (limited) {
    return limited
  }
}

/** Before the routes, so that the dashboard may read every response, refusals included, and send its cookie. */
function allowDashboard(app: FastifyInstance, { people }: HttpOptions, admit: Admit): void {
  if (people === undefined) return
  app.addHook('onRequest', (request, reply, done) => {
    if (request.headers.origin !== people.origin) return done()
    reply.headers(dashboardHeaders(people.origin))
    if (request.method !== 'OPTIONS' || request.headers['access-control-request-method'] === undefined) return done()
    admit.address(request.ip, reply)
    send(request, reply, dashboardPreflight)
  })
}

function addPreflight(app: FastifyInstance, url: string, methods: readonly string[], admit: Admit): void {
  app.route({
    method: 'OPTIONS',
    url,
    onRequest: allowCrossOrigin,
    handler: (request, reply) => {
      admit.address(request.ip, reply)
      return send(request, reply, preflightResponse(methods))
    },
  })
}

function addPage(app: FastifyInstance, page: PublicPage, { options, admit, bodies, responses }: RouteContext): void {
  const isLimited = page.path !== '/healthz' && page.path !== '/readyz'
  const isStatic = page.isStatic === true
  const [limit, sized] = isStatic ? [admit.staticFiles, responses.ofStaticFiles] : [admit, responses.ofPages]
  const { bodyBytesMax: bytesMax = 0, method = 'GET' } = page
  const onRequest = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (isLimited) limit.address(request.ip, reply, page.cost)
    reserveBody(bodies.ofPages, { request, reply, bytesMax, owner: request.ip })
  }
  app.route({
    method: method === 'GET' && page.getChanges !== true ? ['GET', 'HEAD'] : method,
    url: page.path,
    bodyLimit: Math.max(1, bytesMax),
    onRequest: page.crossOrigin === true ? [allowCrossOrigin, onRequest] : onRequest,
    handler: async (request, reply) => {
      const { params, ip } = request
      const response = await page.respond(params as Record<string, string>, { ...rawRequest(request), address: ip })
      if (!isLimited) return send(request, reply, response)
      const ctx = { ...options.deps, requestId: request.id as RequestId }
      const owe = (cost: number): void => limit.oweAddress(ip, cost)
      return send(request, reply, sized({ ctx, shareOwner: ip, method, owe, response, sending: reply.raw }))
    },
  })
}

function addOperation(app: FastifyInstance, operation: BoundOperation, context: RouteContext): void {
  const { admit, bodies, trust } = context
  const { method, deps, changesNothing } = operation
  const bytesMax = operation.streamsInput === undefined ? (operation.bodyBytesMax ?? bodyBytesMax) : 0
  /** Admits the caller before the body is read. */
  const onRequest = async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const caller = await identifyCaller(operation, request, reply, context)
    // The body of a caller that disconnected meanwhile never ends.
    if (request.raw.socket.destroyed) return reply.hijack()
    if (caller.actor.kind !== 'guest' && !trust(request.raw.socket, caller.shareOwner)) {
      reply.header('connection', 'close')
      throw failPlatform('rate-limit-exceeded', { retryAfterSeconds: 1 })
    }
    reserveBody(bodies.ofOperations, { request, reply, bytesMax, owner: caller.shareOwner })
    request.caller = caller
    request.admittedAt = performance.now()
  }
  app.route({
    method,
    url: urlOf(operation.path),
    bodyLimit: operation.bodyBytesMax ?? bodyBytesMax,
    onRequest: operation.guests === undefined ? onRequest : [allowCrossOrigin, onRequest],
    handler: async (request, reply) => {
      const stopTimer = deps.metrics.requestSeconds.startTimer({ operation: operation.id })
      const { caller } = request
      if (caller === undefined) throw new Error('a request without a caller was admitted')
      const refuseEnded = () => identifyAgain(operation, request, context)
      // A GET has no body, and the ticket of a guest opens one stream only.
      if (method !== 'GET' && performance.now() - request.admittedAt > bodyMsUnchecked) await refuseEnded()
      const takeRefusalRecord = () => context.refusals.take(caller)
      const { shareOwner } = caller
      const { charge, owe } = chargesOf(admit, caller, reply)
      const ctx = makeCtx(deps, caller, request.id as RequestId, {
        ...{ takeRefusalRecord, refuseEnded, replayCharges: replayChargesOf(admit, caller) },
      })
      const requested = { ...rawRequest(request), charge }
      const giveBack = context.settings.take(caller, settingCostOf(operation, requested.body))
      const called = await callOperation(ctx, operation, requested)
      if (called.status >= 300) giveBack()
      const sending = { ctx, shareOwner, method, changesNothing, owe, charge, response: called, sending: reply.raw }
      const response = withRefusalMembers(operation, requested, context.responses.ofOperations(sending))
      stopTimer()
      deps.metrics.requests.inc({ operation: operation.id, status: String(response.status) })
      deps.log.debug({ requestId: request.id, operation: operation.id, status: response.status }, 'answered')
      if (response.body instanceof EventStreamResponse)
        return sendEventStream(request, reply, { ...response, body: response.body }, context.connections)
      if (response.body instanceof ReusedBufferStream)
        return sendReusedBuffer(request, reply, { ...response, body: response.body }, context)
      return send(request, reply, response)
    },
  })
}

interface RouteContext {
  readonly options: HttpOptions
  readonly admit: Admit
  readonly bodies: BodyBudgets
  readonly responses: ResponseLimits
  readonly trust: Trust
  readonly connections: OpenSseConnections
  readonly settings: SettingChanges
  readonly refusals: RefusalRecords
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

function send(request: FastifyRequest, reply: FastifyReply, response: RawResponse): FastifyReply {
  setHead(request, reply, response)
  if (response.body instanceof EventStreamResponse) throw new Error('only an operation can keep its response open')
  if (response.body instanceof Readable) return reply.send(response.body)
  return reply.send(response.body.length === 0 ? undefined : response.body)
}

function setHead(request: FastifyRequest, reply: FastifyReply, response: RawResponse): void {
  const { status, headers, cookies = [] } = response
  responseBegun(request, response)
  for (const cookie of cookies) reply.header('set-cookie', cookie)
  const vary = varyOf(reply.getHeader('vary'), headers)
  reply.code(status).headers({ 'cache-control': 'no-store', ...headers, ...vary, ...commonHeaders(request.id) })
}

/**
 * Sends the head and passes on the open response, bypassing the library, which would keep a node stream and its listeners for each. The
 * connection ends with the response, so that a stopping server waits for nobody.
 */
function sendEventStream(
  request: FastifyRequest,
  reply: FastifyReply,
  response: RawResponse & { readonly body: EventStreamResponse },
  connections: OpenSseConnections,
): FastifyReply {
  setHead(request, reply, response)
  reply.header('connection', 'close')
  takeOver(reply, response)
  const line = connections.open(reply.raw, response.body.closed)
  response.body.open(line)
  if (connections.isStopping) line.end()
  // A caller that disconnected before the response was open is not reported again.
  if (reply.raw.destroyed) line.cut()
  return reply
}

/** Bypasses the library too, which would allocate memory for each chunk. */
function sendReusedBuffer(
  request: FastifyRequest,
  reply: FastifyReply,
  response: RawResponse & { readonly body: ReusedBufferStream },
  { options: { deps }, connections }: RouteContext,
): FastifyReply {
  setHead(request, reply, response)
  if (connections.isStopping) reply.header('connection', 'close')
  takeOver(reply, response)
  // A server that began to stop meanwhile waits for no other request on the connection.
  reply.raw.once('finish', () => {
    if (connections.isStopping) request.raw.socket.end()
  })
  void writeStream(reply.raw, response.body, (err) =>
    deps.log.error({ err, requestId: request.id }, 'a response broke off'),
  )
  return reply
}

function refuse(
  { deps, operations }: HttpOptions,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): FastifyReply {
  const problem = asProblem(withoutLibraryFault(error))
  deps.metrics.refusals.inc({ code: problem.code })
  const response = problemResponse({ ...deps, requestId: request.id as RequestId }, problem)
  const operation = operations.find(
    ({ method, path }) => method === request.method && urlOf(path) === request.routeOptions?.url,
  )
  const shaped = operation === undefined ? response : withRefusalMembers(operation, rawRequest(request), response)
  return send(request, reply, shaped)
}
