package crd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// keyNote is what the Secret of a key set keeps of a key besides its hash.
type keyNote struct {
	Description string   `json:"description,omitempty"`
	Expires     string   `json:"expires,omitempty"`
	Tags        []string `json:"tags,omitempty"`
}

// keySets makes the Secrets of the key sets: an entry with the hash for each key.
func (e *exporter) keySets() {
	for _, key := range e.source.keys(model.KindKeySet, "") {
		set := e.source.objects[key].(*model.KeySet)
		out := &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: e.meta(objectName(set.Name), set.Name, set.Tags),
			Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{},
		}
		annotate(&out.ObjectMeta, gatewayv1.AnnotationSecretType, string(model.KindKeySet))
		notes := map[string]keyNote{}
		for _, key := range e.source.keys(model.KindAPIKey, "") {
			k := e.source.objects[key].(*model.APIKey)
			if k.KeySet != set.Name {
				continue
			}
			out.Data[k.Name] = []byte(k.Hash)
			if k.Expires != "" {
				e.todo = append(e.todo, fmt.Sprintf("delete the entry %s of Secret %s after %s: keys of a cluster do not expire",
					k.Name, out.Name, k.Expires))
			}
			if k.Description != "" || k.Expires != "" || len(k.Tags) > 0 {
				notes[k.Name] = keyNote{Description: k.Description, Expires: k.Expires, Tags: k.Tags}
			}
		}
		if len(notes) > 0 {
			annotate(&out.ObjectMeta, gatewayv1.AnnotationKeys, string(jsonText(notes)))
		}
		e.out.Secrets = append(e.out.Secrets, out)
		if len(out.Data) > 0 {
			e.todo = append(e.todo, fmt.Sprintf("give the clients of key set %s their keys again: in a key, which is base64, "+
				"%q at the beginning becomes %q", set.Name, set.Name+"/", e.options.Namespace+"."+out.Name+"/"))
		}
	}
}

// keySetOf returns the name of the key set for a Secret that a filter names.
func (i *importer) keySetOf(at, namespace, name string) string {
	for _, s := range i.in.Secrets {
		if namespaceOf(s.ObjectMeta) == namespace && s.Name == name {
			i.keySets[namespace+"/"+name] = true
			return nameOf(s.ObjectMeta, i.several)
		}
	}
	i.add("%s: the Secret %s/%s with the hashes of its keys is not among the objects", at, namespace, name)
	return name
}

// isKeySet reports whether a Secret is a key set: Export made it of one, or a filter names it as one.
func (i *importer) isKeySet(o *corev1.Secret) bool {
	return o.Annotations[gatewayv1.AnnotationSecretType] == string(model.KindKeySet) ||
		i.keySets[namespaceOf(o.ObjectMeta)+"/"+o.Name]
}

// keySet reads the Secret of a key set.
func (i *importer) keySet(o *corev1.Secret) {
	at := fmt.Sprintf("Secret %s/%s", namespaceOf(o.ObjectMeta), o.Name)
	set := &model.KeySet{Name: nameOf(o.ObjectMeta, i.several), Tags: model.NewTags(tagsOf(o.ObjectMeta))}
	i.put(at, set)
	if cluster := namespaceOf(o.ObjectMeta) + "." + o.Name; set.Name != cluster &&
		o.Annotations[gatewayv1.AnnotationSecretType] == "" {
		i.warn("%s: give its clients their keys again: in a key, which is base64, %q at the beginning becomes %q", at,
			cluster+"/", set.Name+"/")
	}
	notes := map[string]keyNote{}
	if text := o.Annotations[gatewayv1.AnnotationKeys]; text != "" {
		if err := json.Unmarshal([]byte(text), &notes); err != nil {
			i.add("%s: the annotation %s: %s", at, gatewayv1.AnnotationKeys, err)
		}
	}
	entries := map[string]string{}
	for name, hash := range o.Data {
		entries[name] = string(hash)
	}
	for name, hash := range o.StringData {
		entries[name] = hash
	}
	for name, hash := range entries {
		key := &model.APIKey{
			KeySet: set.Name, Name: name, Hash: strings.TrimRight(hash, "\r\n"),
			Description: notes[name].Description, Expires: notes[name].Expires, Tags: model.NewTags(slices.Clone(notes[name].Tags)),
		}
		for _, wrong := range key.Validate() {
			i.add("%s: its entry %s is not a key: %s %s", at, name, wrong.Field, wrong.Message)
		}
		i.put(at, key)
	}
}
