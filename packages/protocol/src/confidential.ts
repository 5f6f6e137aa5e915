/**
 * Whether nobody else can read what is sent to a URL, or pose as its host: by https, or by http on this machine, to which
 * all names below `localhost` belong (RFC 6761, section 6.3).
 *
 * @example
 * isConfidential(new URL('http://localhost:4200')) // true
 * isConfidential(new URL('http://api.example.com')) // false
 */
export function isConfidential({ protocol, hostname }: URL): boolean {
  const isLocal = /^(?:localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  return protocol === 'https:' || (protocol === 'http:' && isLocal)
}
