import {
  type Attributes,
  type Context,
  context,
  ProxyTracerProvider,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'

// Until `startTracing` registers a provider, this tracer makes spans that record nothing.
const tracer = trace.getTracer('purser')

/** Attribute of the span of one run of a loop. */
export const loopAttribute = 'purser.loop'
/** Attribute of a statement that changed rows: how many. */
export const rowsChangedAttribute = 'purser.rows_changed'

/** A request that is being answered. */
export interface RequestSpan {
  /** Runs the work inside the span. */
  within(work: () => void): void
  /** Ends the span with the status of the response; undefined if the connection closed before one was sent. */
  end(status: number | undefined): void
}

/**
 * Begins the span of a request: a new trace, or, with `OTEL_TRUST_CALLERS`, a child of the caller's span that `traceparent` names. Undefined
 * if nothing is exported, so that the request costs nothing here.
 * Source: W3C Trace Context; OpenTelemetry semantic conventions, HTTP server spans.
 */
export function startRequestSpan(request: {
  readonly id: string
  readonly method: string
  /** The declared path, such as `/payments/:id`: a requested path may contain a private id or a query. */
  readonly route: string | undefined
  readonly headers: Readonly<Record<string, unknown>>
}): RequestSpan | undefined {
  if (!isExported()) return undefined
  const { id, method, route, headers } = request
  const caller = propagation.extract(ROOT_CONTEXT, headers)
  const attributes: Attributes = { 'http.request.method': method, 'purser.request.id': id }
  if (route !== undefined) attributes['http.route'] = route
  const name = route === undefined ? method : `${method} ${route}`
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER, attributes }, caller)
  const own = trace.setSpan(caller, span)
  return {
    within: (work) => context.with(own, work),
    end(status) {
      if (status !== undefined) span.setAttribute('http.response.status_code', status)
      if (status === undefined || status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
    },
  }
}

/** Adds attributes to the span of the request or the run that this is a part of, if there is one. */
export function describeSpan(attributes: Attributes): void {
  trace.getActiveSpan()?.setAttributes(attributes)
}

/** One run of a loop, as a trace of its own. The export leaves out runs that changed nothing. */
export function inLoopSpan<T>(loop: string, work: () => Promise<T>): Promise<T> {
  return inSpan(`run ${loop}`, { kind: SpanKind.INTERNAL, attributes: { [loopAttribute]: loop } }, ROOT_CONTEXT, work)
}

/**
 * A statement, if it is a part of something that is traced. Its text has placeholders in the place of values.
 * Source: OpenTelemetry semantic conventions, database client spans.
 */
export function inStatementSpan<T extends { readonly command: string; readonly rowCount: number | null }>(
  text: string,
  work: () => Promise<T>,
): Promise<T> {
  if (!isTraced()) return work()
  const { operation, name } = namesOf(text)
  const attributes = { 'db.system.name': 'postgresql', 'db.operation.name': operation, 'db.query.text': text.trim() }
  return inSpan(name, { kind: SpanKind.CLIENT, attributes }, context.active(), async (span) => {
    const result = await work()
    if (result.command !== 'SELECT' && (result.rowCount ?? 0) > 0)
      span.setAttribute(rowsChangedAttribute, result.rowCount ?? 0)
    return result
  })
}

/** JSON-RPC calls to a node, if they are a part of something that is traced. */
export function inNodeSpan<T>(network: number, methods: readonly string[], work: () => Promise<T>): Promise<T> {
  if (!isTraced()) return work()
  const method = [...new Set(methods)].join(',')
  const attributes = { 'rpc.system.name': 'jsonrpc', 'rpc.method': method, 'purser.chain.id': network }
  return inSpan(method, { kind: SpanKind.INTERNAL, attributes }, context.active(), work)
}

/** A delivery to a webhook, if it is a part of something that is traced. It takes longer than the run that begins it. */
export function inDeliverySpan<T>(work: () => Promise<T>): Promise<T> {
  if (!isTraced()) return work()
  return inSpan('deliver', { kind: SpanKind.INTERNAL, attributes: {} }, context.active(), work)
}

/**
 * A request to another server, if it is a part of something that is traced. Names no path: those of nodes contain keys. `traceparent` is the
 * header that makes the other server's spans children of this one.
 * Source: W3C Trace Context; OpenTelemetry semantic conventions, HTTP client spans.
 */
export function inClientSpan<T>(
  { method, url }: { readonly method: string; readonly url: URL },
  work: (traceHeaders: Readonly<Record<string, string>>) => Promise<T>,
  statusOf: (result: T) => number | undefined,
): Promise<T> {
  if (!isTraced()) return work({})
  const port = Number(url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : url.port)
  const attributes = { 'http.request.method': method, 'server.address': url.hostname, 'server.port': port }
  return inSpan(method, { kind: SpanKind.CLIENT, attributes }, context.active(), async (span) => {
    const traceHeaders: Record<string, string> = {}
    propagation.inject(context.active(), traceHeaders)
    const result = await work(traceHeaders)
    const status = statusOf(result)
    if (status !== undefined) span.setAttribute('http.response.status_code', status)
    if (status === undefined || status >= 400) span.setStatus({ code: SpanStatusCode.ERROR })
    return result
  })
}

/** Whether `startTracing` has registered a provider. */
function isExported(): boolean {
  const provider = trace.getTracerProvider()
  return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer('purser') !== undefined
}

function isTraced(): boolean {
  return trace.getActiveSpan()?.isRecording() === true
}

function inSpan<T>(
  name: string,
  options: { readonly kind: SpanKind; readonly attributes: Attributes },
  parent: Context,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return tracer.startActiveSpan(name, options, parent, async (span) => {
    try {
      return await work(span)
    } catch (error) {
      // The class only: messages of errors may contain values of statements.
      span.setAttribute('error.type', error instanceof Error ? error.name : 'unknown')
      span.setStatus({ code: SpanStatusCode.ERROR })
      throw error
    } finally {
      span.end()
    }
  })
}

/** `update payments` for a statement that updates that table, and likewise; a statement of several tables is named after its first one. */
function namesOf(text: string): { readonly operation: string; readonly name: string } {
  const operation = /[a-z]+/i.exec(text)?.[0].toLowerCase() ?? 'statement'
  const table = /\b(?:from|into|update)\s+([a-z_]+)/i.exec(text)?.[1]
  return { operation, name: table === undefined ? operation : `${operation} ${table}` }
}
