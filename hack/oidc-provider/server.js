// An identity provider of the tests: npm's oidc-provider with a login page and a
// consent page that a script can fill in. Usage: node server.js CONFIG.json
//
// CONFIG.json has issuer, address, port, cert and key (files), and what can be
// changed while it runs with PUT /control, a JSON object whose fields replace
// those that are there:
//   clients   as oidc-provider takes them
//   users     {NAME: {password, claims}}
//   consent   true: a client asks for consent once; else only with prompt=consent
//   ttl       {AccessToken, IdToken, RefreshToken}, in seconds
//   rotate_refresh_tokens  true: a refresh token is good for one use
//   faults    {PATH: {status, delay, body}}; delay is in ms, without status the
//             answer is the usual one
//   keys      "rotate": a new key signs, the old ones stay published; "replace": the
//             old ones are gone at once. It is not kept.
// GET /control lists the requests so far. Sessions survive each change.
import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { Provider } from 'oidc-provider';
import { createMemoryAdapter } from 'oidc-provider/lib/adapters/memory_adapter.js';

const config = JSON.parse(readFileSync(process.argv[2]));
const adapter = createMemoryAdapter();
const adapterOf = (model) => adapter(model); // an arrow function is taken as a factory
const cookieKeys = [randomUUID()];
const requests = [];
let keys = newKeys();
let provider = newProvider();

// The pair is encoded as it is generated: Node's KeyObject.export to a JWK holds the key's
// lock, and hangs forever if the garbage collector then ends the job that generated the key.
function newKeys() {
  const encoding = { publicKeyEncoding: { type: 'spki', format: 'jwk' }, privateKeyEncoding: { type: 'pkcs8', format: 'jwk' } };
  const jwk = (type, options, alg) => ({ ...generateKeyPairSync(type, { ...options, ...encoding }).privateKey, kid: randomUUID(), use: 'sig', alg });
  return [jwk('rsa', { modulusLength: 2048 }, 'RS256'), jwk('ec', { namedCurve: 'P-256' }, 'ES256')];
}

// newProvider has one for what config says now. All claims of a user are in the id_token.
function newProvider() {
  const users = config.users ?? {};
  const claims = new Set(Object.values(users).flatMap((user) => Object.keys(user.claims ?? {})));
  return new Provider(config.issuer, {
    adapter: adapterOf,
    clients: config.clients ?? [],
    jwks: { keys },
    cookies: { keys: cookieKeys },
    scopes: ['openid', 'offline_access', 'email', 'profile', 'groups'],
    claims: { openid: ['sub', ...claims], email: [], profile: [], groups: [] },
    conformIdTokenClaims: false,
    findAccount: (ctx, sub) => users[sub] && { accountId: sub, claims: () => ({ sub, ...users[sub].claims }) },
    features: {
      devInteractions: { enabled: false },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (ctx, form) => {
          ctx.body = page('Sign out', `${form}<button form="op.logoutForm" name="logout" value="yes">Sign out</button>`);
        },
        postLogoutSuccessSource: (ctx) => { ctx.body = page('Signed out', ''); },
      },
    },
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    loadExistingGrant: existingGrant,
    renderError: (ctx, out) => { ctx.type = 'json'; ctx.body = out; },
    rotateRefreshToken: Boolean(config.rotate_refresh_tokens),
    ttl: { AccessToken: 3600, IdToken: 3600, RefreshToken: 86400, Session: 86400, Grant: 86400, Interaction: 600, ...config.ttl },
  });
}

async function existingGrant(ctx) {
  const { session, client, params, result } = ctx.oidc;
  const id = result?.consent?.grantId || session.grantIdFor(client.clientId);
  const known = id && await ctx.oidc.provider.Grant.find(id); // a code that was used twice ends it
  if (known) return known;
  if (config.consent || ctx.oidc.prompts.has('consent')) return undefined;
  return grant(ctx.oidc.provider, session.accountId, client.clientId, params.scope);
}

async function grant(of, accountId, clientId, scope) {
  const g = new of.Grant({ accountId, clientId });
  g.addOIDCScope(scope);
  await g.save();
  return g;
}

function page(title, body) {
  return `<!DOCTYPE html><title>${title}</title><h1>${title}</h1>${body}`;
}

const loginForm = '<form method="post"><input name="login"><input name="password" type="password"><button>Log in</button></form>';
const consentForm = '<form method="post"><input type="hidden" name="consent" value="yes"><button>Allow</button></form>';

// interact shows the form that is due, and takes what was filled in.
async function interact(req, res) {
  const details = await provider.interactionDetails(req, res);
  if (req.method !== 'POST') return send(res, 200, page('Identity provider', details.prompt.name === 'login' ? loginForm : consentForm));
  const form = new URLSearchParams(await body(req));
  if (details.prompt.name === 'login') {
    const name = form.get('login');
    if (!config.users?.[name] || config.users[name].password !== form.get('password')) {
      return send(res, 401, page('Wrong name or password', loginForm));
    }
    return provider.interactionFinished(req, res, { login: { accountId: name } });
  }
  const { params, session, grantId } = details;
  const g = grantId ? await provider.Grant.find(grantId) : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  g.addOIDCScope(params.scope);
  return provider.interactionFinished(req, res, { consent: { grantId: await g.save() } });
}

async function control(req, res) {
  if (req.method === 'GET') return send(res, 200, JSON.stringify(requests), 'application/json');
  const { keys: change, ...fields } = JSON.parse(await body(req));
  Object.assign(config, fields);
  if (change) keys = change === 'rotate' ? [...newKeys(), ...keys] : newKeys();
  provider = newProvider();
  return send(res, 204, '');
}

function send(res, status, text, type = 'text/html') {
  res.writeHead(status, { 'content-type': type }).end(text);
}

async function body(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function handle(req, res) {
  const { pathname, search } = new URL(req.url, config.issuer);
  if (pathname === '/control') return control(req, res);
  requests.push({ method: req.method, path: pathname, query: search, scheme: req.headers.authorization?.split(' ')[0] ?? '' });
  const fault = config.faults?.[pathname];
  if (fault?.delay) await sleep(fault.delay);
  if (fault?.status) return send(res, fault.status, fault.body ?? '');
  if (pathname.startsWith('/interaction/')) return interact(req, res);
  return provider.callback()(req, res);
}

createServer({ cert: readFileSync(config.cert), key: readFileSync(config.key) }, (req, res) => {
  handle(req, res).catch((error) => send(res, 500, `${error.stack}\n`, 'text/plain'));
}).listen(config.port, config.address);
