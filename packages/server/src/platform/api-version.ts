/** The version of the interface: `info.version` of openapi.json and `X-Service-Version` of every response and delivery (docs/versioning.md). */
export const apiVersion = '1.0.0'
